// The one table of errors: every message that a user can meet stands here, with its exit code, what a client may do about
// it, and what a person should. Nothing branches on the text; docs/errors.md is made from this table.
import { EXIT, conflicting, refused, storage, unknown, unreachable, usage } from "./error-row.ts";
import type { ErrorRow } from "./error-row.ts";
import { KEY_ERRORS } from "./key-errors.ts";
import { FLEET_ERRORS } from "./fleet-errors.ts";
import { RELEASE_ERRORS } from "./release-errors.ts";

export const ERRORS = {
  // Wrong usage and configuration
  usage: { ...usage, message: "{detail}", hint: "see `{command} --help`" },
  node_too_old: {
    ...usage,
    message: "rollout needs Node {needed} or newer, and this is {found}",
    hint: "install a newer Node and run it again",
  },
  config_unreadable: {
    ...usage,
    message: "cannot read the configuration file {file}: {reason}",
    hint: "give its path with --config FILE, or make one with `rollout init`",
  },
  config_syntax: {
    ...usage,
    message: "{file}:{line}:{column}: not valid TOML: {reason}",
    hint: "correct that line",
  },
  config_unknown_key: { ...usage, message: "{source}: unknown setting {key}", hint: "{suggestion}" },
  config_missing_key: { ...usage, message: "{source}: {key} is not set", hint: "set it to {allowed}" },
  config_invalid_value: {
    ...usage,
    message: "{source}: {key} = {value} is not allowed",
    hint: "allowed: {allowed}",
  },
  config_contradiction: {
    ...usage,
    message: "{source}: {key} = {value} contradicts {otherKey} = {otherValue}",
    hint: "{rule}",
  },
  manifest_unreadable: {
    ...usage,
    message: "cannot read the plugin manifest {file}: {reason}",
    hint: "give the path of a TOML file with --plugin FILE",
  },
  plugin_repeated: {
    ...usage,
    message: "{file}: version {version} of plugin {name} is already taken from {other}",
    hint: "give each plugin another name, or each version of it another version number",
  },
  backend_broken: {
    ...usage,
    message: "the backend of plugin {plugin} does not start: {reason}",
    hint: "correct the manifest or the program and start the worker again; its items were handed back, and none was charged",
  },
  machine_unusable: { ...usage, message: "cannot load a machine from {file}: {reason}", hint: "{advice}" },
  too_few_files: {
    ...usage,
    message: "{who} needs {needed} open files and sockets, and a process may have {limit} here",
    hint: "raise the limit first: `ulimit -n {needed}` or more in a shell, LimitNOFILE= in a systemd unit",
  },

  // Input
  input_unreadable: {
    ...usage,
    message: "cannot read the input {file}: {reason}",
    hint: "correct the path or the named line, or give - for standard input",
  },
  input_invalid: {
    ...usage,
    message: "{file}:{line}: not an item: {reason}",
    hint: "correct that line, or take lines as they are with --text; what stands before it is submitted",
  },
  input_refused: {
    ...usage,
    message: "{file}:{line}: not an item: {reason}",
    hint: "correct that line, or take lines as they are with --text; nothing was started",
  },
  key_invalid: {
    ...usage,
    message: "{file}:{line}: not an item with a key: {reason}",
    hint: "correct that line and give the same command again: no line of the same batch was submitted, and no line is submitted twice",
  },
  input_changed: {
    ...storage,
    message: "{file} was changed while it was read: the submitted lines are not those that it had at first",
    hint: "give the same command again: it reads the file as it is then, and submits no line twice",
  },
  item_too_large: {
    ...usage,
    message: "{file}:{line}: the line has {bytes} bytes or more, and an item has {limit} at most",
    hint: "shorten that line, or raise the limit with --payload-limit, up to 16MiB",
  },
  not_trusted: {
    ...usage,
    message: "{path} is not to be trusted: {reason}",
    hint: "{advice}",
  },

  // A run on this machine
  run_held: {
    ...refused,
    message: "{directory} is in use by {holder}",
    hint: "{advice}",
  },
  process_given_up: {
    ...refused,
    message: "{who} does not stay alive: {reason}",
    hint: "{advice}",
  },
  run_directory_unusable: {
    ...usage,
    message: "{directory} cannot keep a run: {reason}",
    hint: "name another directory with --dir",
  },
  other_run_task: {
    ...usage,
    message: "{output} is of another task: of {found}, and this is {wanted}",
    hint: "choose another output with -o; to give up what was done remove {files}",
  },
  local_run_ended: {
    ...refused,
    message: "the local run in {directory} {state}",
    hint: "{advice}",
  },

  // Storage
  store_held: {
    ...storage,
    message: "the database {path} is held by another process: {holder}",
    hint: "stop that process, or use a directory of its own for this one",
  },
  store_unusable: {
    ...storage,
    message: "cannot open the database {path}: {reason}",
    hint: "{advice}",
  },
  store_unreachable: {
    ...storage,
    message: "the database {path} cannot be reached: {reason}",
    hint: "check that the server runs and listens there; a coordinator that starts goes on trying",
  },
  store_corrupt: {
    ...storage,
    message: "the database {path} is damaged at {key}: {reason}",
    hint: "restore a copy; `rollout doctor{config}` says what is damaged and can set it aside, `rollout results{config}` exports what can be read",
  },
  store_broken: {
    ...storage,
    message: "the database {path} cannot be opened, because it is damaged at {key}: {reason}",
    hint: "restore a copy: nothing can be read from it as it is, not by `rollout results{config}` either",
  },
  worker_store_corrupt: {
    ...storage,
    message: "the worker's own database {path} is damaged at {key}: {reason}",
    hint: "remove {path} and start the worker again: items whose results it had not delivered run again",
  },
  store_lost: {
    ...storage,
    message: "the database {path} {state}, and {known}",
    hint: "put back what is missing, from a copy; to run everything again on purpose remove {files}",
  },
  quarantine_refused: {
    ...usage,
    message: "{key} is not set aside: {reason}",
    hint: "give a key that `rollout doctor{config}` names as damaged; if it names none, export what can be read with `rollout results{config}`",
  },
  store_write_failed: {
    ...storage,
    message: "a write to the database {path} failed: {reason}",
    hint: "free space, replace the disk or repair the server, then start again: nothing that was acknowledged is lost",
  },
  store_newer: {
    ...storage,
    message:
      "the database {path} was written by a newer rollout: {key} has version {found}, this one knows {known}",
    hint: "use the newer rollout",
  },
  store_rolled_back: {
    ...storage,
    message: "the database {path} went back to an older state: {missing} are missing, as far as is known",
    hint: 'put back its newest state; to go on without what is missing, start once with storage.on_rollback = "accept"',
  },
  store_other_run: {
    ...storage,
    message: "the database {path} belongs to run {found}, and this run is {expected}",
    hint: "correct run_id, or point storage.path or storage.url at another database",
  },

  // Reaching a coordinator
  listen_failed: {
    ...unreachable,
    retry: "never",
    message: "cannot listen on {address}: {reason}",
    hint: "set {setting} to a free address of this machine",
  },
  coordinator_name_not_found: {
    ...unreachable,
    message: "the host name in {address} is not found",
    hint: "correct the address, or the name service (DNS) of this machine",
  },
  coordinator_refused_connection: {
    ...unreachable,
    message: "nothing listens at {address}",
    hint: "start the coordinator with `rollout coordinator run{config}`, or correct the address",
  },
  coordinator_silent: {
    ...unreachable,
    message: "the coordinator at {address} does not answer",
    hint: "check the network between this machine and the coordinator",
  },
  /** A candidate's answer to every call. `address` and `epoch` are "unknown" while it knows no leader. */
  not_leader: {
    ...unreachable,
    retry: "new-leader",
    message: "this coordinator follows another one; leader: {address}, epoch {epoch}",
    hint: "ask the leader, or this coordinator again in {retry_after_ms} ms",
  },
  no_leader_found: {
    ...unreachable,
    retry: "new-leader",
    message: "no coordinator leads: {said}",
    hint: "if the leader has died, another coordinator takes over within seconds; otherwise start one with `rollout coordinator run{config}`",
  },
  certificate_refused: {
    ...refused,
    message: "the coordinator at {address} refused this certificate ({subject})",
    hint: "get a new one with `rollout ca issue` on the coordinator's machine",
  },
  coordinator_not_trusted: {
    ...refused,
    message: "the certificate of {address} is not this run's coordinator's: {reason}",
    hint: "check the address, and that both sides use the same {ca}",
  },
  permission_denied: {
    ...refused,
    message: "{who} may not call {method}",
    hint: "use a certificate of the right role; `rollout ca issue --help` lists them",
  },
  enrolment_refused: {
    ...refused,
    message: "the coordinator at {address} did not sign a certificate: {reason}",
    hint: "make a new enrolment bundle with `rollout ca issue` on the coordinator's machine",
  },
  request_invalid: {
    ...usage,
    exit: EXIT.unreachable,
    message: "the coordinator did not understand {method}: {reason}",
    hint: "use the same version of rollout on both sides",
  },
  run_sealed: {
    ...conflicting,
    message: "the run is sealed: it takes no new items",
    hint: "submit to a run that is open; `rollout status{config}` says how this one stands",
  },
  run_cancelled: {
    ...conflicting,
    message: "the run was cancelled, for good",
    hint: "its results stay where they are; for more work make a new run with `rollout init`",
  },
  other_task: {
    ...conflicting,
    message: "this run executes {task}, and these items are for {other}",
    hint: "submit them to a run of their own, made with `rollout init`",
  },
  ...KEY_ERRORS,
  ...RELEASE_ERRORS,
  ...FLEET_ERRORS,
  item_unknown: {
    ...unknown,
    message: "the run has no item {name}",
    hint: "name it by its id, by the first 6 or more digits of its id, or by the id that its input gave it",
  },
  item_ambiguous: {
    ...unknown,
    message: "{name} means several items, among them {items}",
    hint: "name it by more digits of its id",
  },
  name_unknown: {
    ...unknown,
    message: "the run has no item, worker or actor {name}",
    hint: "`rollout worker list{config}` says which workers it has; name an item by its id, its first digits, or its input's id",
  },
  worker_unknown: {
    ...unknown,
    message: "the run has no worker {worker}",
    hint: "`rollout worker list{config}` lists its workers",
  },
  no_successor: {
    ...conflicting,
    message: "no other coordinator can take over",
    hint: "start one beside it with `rollout coordinator run`, over the same Postgres; `rollout status{config}` shows which are there",
  },
  overloaded: {
    exit: EXIT.unreachable,
    connect: "ResourceExhausted",
    retry: "same-leader",
    message: "the coordinator has too much to do: {what} is at its limit of {limit}",
    hint: "try again in a moment",
  },
  worker_superseded: {
    exit: EXIT.unreachable,
    connect: "Aborted",
    retry: "never",
    message: "worker {worker} was started again elsewhere, so this process ends",
    hint: "give each worker a state directory of its own",
  },
  worker_alive: {
    ...conflicting,
    retry: "same-leader",
    message: "worker {worker} is alive, and this process does not have its key",
    hint: "give this worker another id and another state directory, or end the other one: it counts as failed some seconds later",
  },
  certificate_revoked: {
    ...refused,
    message: "{who} was revoked",
    hint: "start the worker again without --worker-id: it joins as another one; or get another bundle from `rollout ca issue`",
  },
  clock_ahead: {
    ...conflicting,
    message: "this worker's process begins more than a day ahead of the coordinator's clock",
    hint: "set the clocks of both machines right, then start the worker again",
  },

  // Certificates and keys on disk
  tls_file_unreadable: {
    ...usage,
    message: "cannot read {what} at {file}: {reason}",
    hint: "{advice}",
  },
  tls_file_invalid: {
    ...usage,
    message: "{what} at {file} is not usable: {reason}",
    hint: "{advice}",
  },
  tls_key_exposed: {
    ...usage,
    message: "{file} can be read by others (mode {mode})",
    hint: "run `chmod 600 {file}`",
  },
  other_authority: {
    ...usage,
    message: "{found}, and the CA of this run is another one (SHA-256 {fingerprint})",
    hint: "copy ca.pem and ca.key.pem from transport.tls_dir of another coordinator of the run to {directory}, the key readable by you alone",
  },

  // Ends
  interrupted: {
    exit: EXIT.interrupted,
    connect: "Unavailable",
    retry: "never",
    message: "interrupted",
    hint: "run the same command to go on",
  },
  file_unwritable: {
    ...usage,
    message: "cannot write {file}: {reason}",
    hint: "choose a directory that this user may write to",
  },
  output_unwritten: {
    ...storage,
    message: "cannot write {file}: {reason}",
    hint: "free space and give the same command again: results are kept with the run, nothing is lost",
  },
  output_not_continued: {
    ...usage,
    message: "cannot go on writing {file}: {reason}",
    hint: "{advice}",
  },
  internal: {
    exit: EXIT.bug,
    connect: "Internal",
    retry: "never",
    message: "this is a bug in rollout: {detail}",
    hint: "run it again with ROLLOUT_LOG_LEVEL=debug and report what it prints",
  },
} as const satisfies Record<string, ErrorRow>;
