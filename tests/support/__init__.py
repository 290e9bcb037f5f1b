"""What tests of several packages share: data, servers, readers of docs, programs of `make`."""
