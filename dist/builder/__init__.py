"""The steps of `dist/build`, a file each."""
