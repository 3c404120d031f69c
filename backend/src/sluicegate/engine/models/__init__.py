"""What stands around each model: the fast lane, its pace, the files it is sent, its failures."""
