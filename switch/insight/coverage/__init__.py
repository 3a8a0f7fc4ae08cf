"""What a workload reached of a program."""
