"""The command line: look things up by name, and print what commands say."""
