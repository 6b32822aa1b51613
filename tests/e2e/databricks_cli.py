"""The rules that the Databricks CLI applies to a bundle, for the fields that jobs/ uses.

The tests cannot depend on the CLI, so this module reimplements its rules. Each rule cites its
source file in github.com/databricks/cli (v1.13.0, commit 7bbe285). Paths are relative to
``bundle/``, except for those that start with ``libs/``. The rules cover one user and one target:
`load` merges the bundle, `problems` lists the violations of these rules, which `bundle validate` or
the workspace would report, and `as_deployed` returns the resources as they are created.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

Config = dict[str, Any]

USER = {"userName": "ada.l@example.com", "short_name": "ada_l"}
# libs/dyn/dynvar/ref.go: BaseVarDef and re.
_SEGMENT = r"[^\W\d_]+(?:[-_]*[^\W_]+)*"
REFERENCE = re.compile(rf"\$\{{({_SEGMENT}(?:\.{_SEGMENT}(?:\[[0-9]+\])*)*(?:\[[0-9]+\])*)\}}")
# Resolved by the platform: {{job.parameters.input}}, {{tasks.ingest.values.run_id}}.
DYNAMIC = re.compile(r"\{\{([^{}]+)\}\}")
# config/mutator/resourcemutator/apply_bundle_permissions.go: allowedLevels.
BUNDLE_LEVELS = ("CAN_MANAGE", "CAN_VIEW", "CAN_RUN")
# schema/jsonschema.json: jobs.JobPermissionLevel. Schemas and volumes use grants instead.
RESOURCE_LEVELS = {"jobs": ("CAN_MANAGE", "CAN_MANAGE_RUN", "CAN_VIEW", "IS_OWNER")}
# config/mutator/resourcemutator/merge_grants.go: grantResourceTypes, limited to those used here.
GRANTED = ("schemas", "volumes")
# config/root.go: MergeTargetOverrides, "fields that can be merged 1:1".
MERGED = ("bundle", "workspace", "artifacts", "resources", "sync", "permissions", "presets")
# config/mutator/initialize_volume_paths.go, and the fields that the API sets on every resource.
COMPUTED = {"volumes": {"id", "volume_path"}, "schemas": {"id"}, "jobs": {"id"}}
# Other tasks, such as condition tasks, need no compute:
# config/validate/job_task_cluster_spec.go.
COMPUTE_TASKS = ("python_wheel_task", "spark_python_task", "notebook_task", "spark_jar_task")
COMPUTE = ("job_cluster_key", "environment_key", "existing_cluster_id", "new_cluster")


def load(root: Path, target: str, given: Mapping[str, str]) -> Config:
    """Returns the merged bundle of a target. ``given`` contains variables from ``--var``."""
    return merge_target(read(root), target, given)


def read(root: Path) -> Config:
    """Returns the bundle with all included files (config/loader/process_include.go)."""
    config: Config = yaml.safe_load(root.read_text(encoding="utf-8"))
    for pattern in config["include"]:
        for path in sorted(root.parent.glob(pattern)):
            config = _merge(config, yaml.safe_load(path.read_text(encoding="utf-8")))
    return config


def merge_target(config: Config, target: str, given: Mapping[str, str]) -> Config:
    """config/root.go: MergeTargetOverrides; config/mutator/set_variables.go."""
    config = copy.deepcopy(config)
    chosen = config["targets"][target]
    for field in MERGED:
        if field in chosen:
            config[field] = _merge(config.get(field), chosen[field])
    for name, value in chosen.get("variables", {}).items():
        config["variables"].setdefault(name, {"is_undeclared": True})["default"] = value
    # These two fields replace the top-level values.
    for field, place in (("run_as", config), ("mode", config["bundle"])):
        if field in chosen:
            place[field] = chosen[field]
    config["bundle"]["target"] = target
    for name, variable in config["variables"].items():
        variable["value"] = given.get(name, variable.get("default"))
    return config


def _merge(below: Any, above: Any) -> Any:
    """libs/dyn/merge/merge.go: merges maps, concatenates sequences, replaces other values."""
    if isinstance(below, dict) and isinstance(above, dict):
        return below | {key: _merge(below.get(key), value) for key, value in above.items()}
    if isinstance(below, list) and isinstance(above, list):
        return below + above
    return copy.deepcopy(above)


def as_deployed(config: Config) -> Config:
    """Applies presets and resolves all references, in the order used by the CLI."""
    config = copy.deepcopy(config)
    # phases/initialize.go: variables first, then presets, then resource references.
    config = _resolved(config, config, ("bundle", "workspace", "var"))
    if config["bundle"].get("mode") == "development":
        _apply_development_mode(config)
    for volume in config["resources"].get("volumes", {}).values():
        parts = (volume["catalog_name"], volume["schema_name"], volume["name"])
        volume["volume_path"] = "/Volumes/" + "/".join(parts)
    # A resource reference may resolve to another reference.
    for _ in range(3):
        config = _resolved(config, config, ("resources",))
    return config


def _apply_development_mode(config: Config) -> None:
    """config/mutator/resourcemutator/apply_target_mode.go and apply_presets.go."""
    prefix = f"[dev {USER['short_name']}] "
    for job in config["resources"].get("jobs", {}).values():
        job["name"] = prefix + job["name"]
        # A schedule that sets its own status keeps it.
        job.get("schedule", {}).setdefault("pause_status", "PAUSED")
    if not config.get("experimental", {}).get("skip_name_prefix_for_schema"):
        for schema in config["resources"].get("schemas", {}).values():
            schema["name"] = _normalized(prefix) + schema["name"]
    # Volumes are not prefixed.


def _normalized(prefix: str) -> str:
    """apply_presets.go: normalizePrefix; libs/textutil/textutil.go: NormalizeString."""
    return re.sub(r"[\W_]+", "_", prefix.lower()).strip("_") + "_"


def _resolved(value: Any, config: Config, roots: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {key: _resolved(inner, config, roots) for key, inner in value.items()}
    if isinstance(value, list):
        return [_resolved(inner, config, roots) for inner in value]
    if not isinstance(value, str):
        return value

    def one(found: re.Match[str]) -> str:
        path = found[1].split(".")
        named = lookup(config, path) if path[0] in roots else None
        return found[0] if named is None else str(named)

    return REFERENCE.sub(one, value)


def lookup(config: Config, path: list[str]) -> Any:
    """config/mutator/resolve_variable_references.go. Returns None if the path does not exist."""
    if path[0] == "var":
        return config["variables"].get(path[1], {}).get("value")
    if path[:2] == ["workspace", "current_user"]:
        return USER.get(path[2])
    value: Any = config
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def problems(config: Config) -> list[str]:
    """Lists the violations of the rules in a merged bundle."""
    return [
        *_variables(config),
        *_references(config),
        *_permissions(config),
        *_run_as(config),
        *_root_path(config),
        *(found for name, job in _jobs(config) for found in _tasks(name, job)),
        *(found for name, job in _jobs(config) for found in _dynamic(name, job)),
        *_grants(config),
    ]


def _jobs(config: Config) -> Iterator[tuple[str, Config]]:
    yield from config["resources"].get("jobs", {}).items()


def _variables(config: Config) -> Iterator[str]:
    """config/root.go: validateVariableOverrides; config/mutator/set_variables.go."""
    for name, variable in config["variables"].items():
        if variable.get("is_undeclared"):
            yield f"variables.{name}: the target sets a variable that is not declared"
        elif variable["value"] is None:
            yield f"variables.{name}: no value assigned to required variable"


def _references(config: Config) -> Iterator[str]:
    for where, text in texts(config["resources"] | {"workspace": config.get("workspace", {})}):
        if text.count("${") != len(REFERENCE.findall(text)):
            yield f"{where}: {text!r} is no reference that the CLI reads"
        for name in REFERENCE.findall(text):
            path = name.split(".")
            computed = len(path) == 4 and path[3] in COMPUTED.get(path[1], ())
            parent = path[:3] if computed and path[0] == "resources" else path
            is_declared = path[0] == "var" and path[1] in config["variables"]
            if not is_declared and lookup(config, parent) is None:
                yield f"{where}: ${{{name}}} does not resolve"


def _permissions(config: Config) -> Iterator[str]:
    """apply_bundle_permissions.go: validatePermissions; config/resources/permission_types.go."""
    for permission in config.get("permissions", []):
        if permission["level"] not in BUNDLE_LEVELS:
            yield f"permissions: {permission['level']} is not one of {', '.join(BUNDLE_LEVELS)}"
    for kind, named in config["resources"].items():
        for name, resource in named.items():
            for permission in resource.get("permissions", []):
                if permission["level"] not in RESOURCE_LEVELS.get(kind, ()):
                    yield f"{kind}.{name}.permissions: {permission['level']} is not allowed here"


def _grants(config: Config) -> Iterator[str]:
    for kind, named in config["resources"].items():
        for name, resource in named.items():
            if "grants" in resource and kind not in GRANTED:
                yield f"{kind}.{name}: has no grants"


def _run_as(config: Config) -> Iterator[str]:
    """config/mutator/resourcemutator/run_as.go: validateRunAs."""
    if "run_as" in config:
        given = [
            key for key in ("service_principal_name", "user_name") if config["run_as"].get(key)
        ]
        if len(given) != 1:
            yield "run_as: exactly one identity must be specified"


def _root_path(config: Config) -> Iterator[str]:
    """validate_target_mode.go; permissions/validate.go: isUsersGroupPermissionSet."""
    mode = config["bundle"].get("mode")
    path = config.get("workspace", {}).get("root_path", "")
    if mode == "production" and not path:
        yield "workspace.root_path: must be set for mode production"
    if mode == "development" and path and "${workspace.current_user." not in path:
        yield "workspace.root_path: must contain the current user for mode development"
    if path.startswith("/Workspace/Shared/"):
        yield "workspace.root_path: is writable by all workspace users"


def _tasks(name: str, job: Config) -> Iterator[str]:
    """config/validate/job_task_cluster_spec.go and job_cluster_key_defined.go."""
    keys = {task["task_key"] for task in job["tasks"]}
    clusters = {cluster["job_cluster_key"] for cluster in job.get("job_clusters", [])}
    environments = {given["environment_key"] for given in job.get("environments", [])}
    for task in job["tasks"]:
        where = f"jobs.{name}.{task['task_key']}"
        if any(kind in task for kind in COMPUTE_TASKS) and not any(key in task for key in COMPUTE):
            yield f"{where}: has neither a cluster nor an environment"
        if task.get("job_cluster_key") not in {None, *clusters}:
            yield f"{where}: job_cluster_key is not defined"
        if task.get("environment_key") not in {None, *environments}:
            yield f"{where}: environment_key is not defined"
        for needed in task.get("depends_on", []):
            if needed["task_key"] not in keys:
                yield f"{where}: depends on {needed['task_key']}, which is no task"


# docs.databricks.com/jobs/dynamic-value-references: the job-level references used here.
_OF_A_JOB = ("job.id", "job.run_id", "job.start_time.hour", "job.start_time.iso_weekday")


def _dynamic(name: str, job: Config) -> Iterator[str]:
    """A parameter must be declared. A task value must come from a task that has finished."""
    parameters = {parameter["name"] for parameter in job.get("parameters", [])}
    for task in job["tasks"]:
        before = ancestors(job, task["task_key"])
        for where, text in texts(task, f"jobs.{name}.{task['task_key']}"):
            for reference in DYNAMIC.findall(text):
                path = reference.split(".")
                is_parameter = path[:2] == ["job", "parameters"] and path[2] in parameters
                is_value = path[0] == "tasks" and path[1] in before and path[2] == "values"
                if not (is_parameter or is_value or reference in _OF_A_JOB):
                    yield f"{where}: {{{{{reference}}}}} does not resolve"


def ancestors(job: Config, key: str) -> set[str]:
    """Returns the tasks that have finished when the given task starts."""
    needed = {
        task["task_key"]: [item["task_key"] for item in task.get("depends_on", [])]
        for task in job["tasks"]
    }
    found: set[str] = set()
    waiting = list(needed[key])
    while waiting:
        if (task := waiting.pop()) not in found:
            found.add(task)
            waiting.extend(needed.get(task, []))
    return found


def texts(value: Any, where: str = "resources") -> Iterator[tuple[str, str]]:
    """Yields every string nested in a value, with its path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from texts(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from texts(inner, f"{where}[{number}]")
    elif isinstance(value, str):
        yield where, value
