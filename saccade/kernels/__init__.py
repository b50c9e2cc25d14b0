"""Fast paths, each next to its plain reference: functions of tensors, independent of scores and selections."""
