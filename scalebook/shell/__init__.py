"""The shell: things by their names, and what its commands say."""
