"""The application: settings, who may call, routes, the command line."""
