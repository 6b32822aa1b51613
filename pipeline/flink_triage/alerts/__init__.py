"""Reports new, worse, and resolved incidents to Slack, a webhook, or Alertmanager."""
