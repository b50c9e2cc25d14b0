"""The commands: functions whose signatures and docstrings are the command line."""
