"""The commands, one module each; :mod:`cdcfmt_cli.app` imports a command when called."""
