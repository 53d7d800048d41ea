"""From a plant or a log to a controller, with a report that a reviewer can sign."""
