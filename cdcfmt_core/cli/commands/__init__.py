"""The commands, one module each; :mod:`cdcfmt_core.cli.app` loads the one that is asked for."""
