#!/bin/bash
echo "bom ok $LINENO"
