"""One HTML file about a recording: summary, warnings, plots, parameters, versions, replay (extra ``report``)."""
