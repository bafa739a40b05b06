"""The front door: MCP over HTTP and stdio, downloads, health."""
