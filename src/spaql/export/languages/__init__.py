"""One file for each language: how it prints a program, and how it runs one."""
