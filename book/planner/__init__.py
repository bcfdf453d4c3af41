"""The planner: a widget for notebooks, and the script, style sheet and data of the site's page."""

from .data import planner_data, planner_json
from .widget import Planner, planner, planner_parts, planner_script, planner_style

__all__ = ["Planner", "planner", "planner_data", "planner_json", "planner_parts", "planner_script", "planner_style"]
