"""The commands, one module each; :mod:`cdcfmt_core.cli.app` imports a command when called."""
