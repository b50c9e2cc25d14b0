"""A server for trained models; see `saccade.serving.app`."""
