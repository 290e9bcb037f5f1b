"""Shared parts of several packages' tests: data, servers, readers of docs, programs of `make`."""
