#!/bin/sh
echo "café “quoted”"