/**
 * The command line: the list of commands, what they share, and the exit code of each outcome.
 *
 * A command is the file of its name in this folder, which exports `register`, or is made from the table of operations. It
 * is loaded only if the command line names it, and throws Refused for what the operator can fix.
 */
import { inspect } from 'node:util';
import { Command, CommanderError } from 'commander';
import { cleanText, printable } from '../printable.ts';
import { isErrorCode, Refused, type RefusedCode } from '../refused.ts';
import { isDamage, isDiskFull, isForbidden } from '../store/database-errors.ts';
import { COMMIT, SQLITE, VERSION } from '../version.ts';
import type { Register } from './command.ts';
import { addCommonOptions, addExamples } from './options.ts';
import { endProgress } from './output.ts';

/** Their lines in the help: of a command that is one operation, the summary of that. */
const COMMANDS: Readonly<Record<string, string>> = {
  serve: 'run Wirewatch: read export files from the drop folder and serve the Detection Reporting API',
  demo: 'run Wirewatch with a sample agency, sample keys and a steady flow of export files: a lab with a running clock. Prints ready-to-run curl commands; each start begins from scratch',
  lab: 'run Wirewatch for tests of clients: with a clock that can be set, new detections and faults on command; each start begins from scratch',
  account: 'add, show, change and remove accounts: the customers of this installation',
  subscription: 'add, show, change and remove the subscriptions of an account, to which detections belong',
  key: 'create, show, change and revoke the API keys of clients',
  window: 'list the ten-minute windows of the exports (newswire and imagewire), and read failed ones again',
  ingest:
    'show what was read from the drop folder and what is waiting, check a file, pause and resume reading',
  alert: 'list current problems and how to fix them',
  status: 'show the current state on one screen: exports, files, alerts, keys, disks, copy',
  console: 'print a link into the console of the running Wirewatch; it works once, for ten minutes',
  audit: 'print the audit trail: who changed which account, subscription, key or window, and when',
  backup:
    'bring a copy of the installation up to date: a folder or s3://bucket/prefix, whether or not Wirewatch is running',
  restore: 'restore a copy into the data folder while Wirewatch is stopped',
  verify:
    'verify the data folder, even while Wirewatch is running, or a copy. Exit code 1 if there is a problem',
  promote: 'make this standby the writer: it ingests from now on, and the old writer stops when it notices',
  compact:
    'rewrite the log from the database: shorter, without the rows of removed subscriptions, and without damage',
  pull: 'copy detections from a Detection Reporting API into a file and keep the copy up to date',
  check:
    'check the installation and suggest fixes. Changes nothing, and works while Wirewatch is running. Exit code 1 if anything is bad',
  healthcheck:
    'exit with code 0 if Wirewatch is running on the data folder and healthy, or with code 1 and the reason if not. With --url, check whatever listens there',
  setup:
    'write a commented configuration file and, on a system with systemd, a hardened service unit, unless they exist. Starts nothing: prints the remaining steps',
  sample:
    'print a sample file: the configuration, the systemd unit, or one for nginx, certbot, logrotate, Prometheus or Grafana. Without a name, list them',
  generate:
    'write sample export files of any size. With the same --start and --seed, the bytes are always the same',
  openapi: 'print the OpenAPI 3.1 document of the API',
  manual: 'read the manual offline. Without a topic, list the topics',
  completion: 'print a completion script for bash, zsh or fish',
  licenses: 'print the licences of all bundled software',
};

/** Made from the table of operations; any other command is the file of its name. */
const OF_TABLE = ['account', 'subscription', 'window', 'alert', 'console', 'audit', 'promote', 'compact'];

async function load(name: string): Promise<Register> {
  if (OF_TABLE.includes(name)) return (await import('./operation-command.ts')).operationGroup(name);
  const file: { readonly register: Register } = await import(`./${name}.ts`);
  return file.register;
}

const VERSION_TEXT = `wirewatch ${VERSION} (commit ${COMMIT}, Node ${process.versions.node}, SQLite ${SQLITE}, ${process.platform}-${process.arch})`;

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
/** EX_CONFIG of sysexits.h: a service manager should not restart the program before somebody fixes it. */
const EXIT_CONFIGURATION = 78;

/** All others end with {@link EXIT_FAILED}. */
const EXIT_BY_CODE: Readonly<Partial<Record<RefusedCode, number>>> = {
  usage: EXIT_USAGE,
  invalid_request: EXIT_USAGE,
  configuration: EXIT_CONFIGURATION,
};

/**
 * Runs one command line.
 * @param args without the runtime and the script
 * @returns the exit code; the reason of a bad one is on stderr by then
 */
export async function run(args: readonly string[]): Promise<number> {
  try {
    const program = await createProgram((name) => args.includes(name));
    await program.parseAsync(args, { from: 'user' });
    return typeof process.exitCode === 'number' ? process.exitCode : 0;
  } catch (error) {
    // Commander has printed its message, or the help or the version.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
    return reportEnd(error);
  }
}

/**
 * Prints on stderr why a command failed: a Refused in full, anything else in one line. Returns the exit code.
 *
 * Keys, tokens and passwords in addresses are redacted: the output of a command ends up in mails of cron and in journals.
 */
export function reportEnd(error: unknown): number {
  endProgress();
  const debug = process.env.WIREWATCH_DEBUG === '1';
  const refused = error instanceof Refused;
  const message = error instanceof Error ? error.message || error.name : String(error);
  const hint = debug ? '' : ' (set WIREWATCH_DEBUG=1 to see the stack trace)';
  const fault = `${message.replace(/\s*\n\s*/g, ' ')}${adviceOn(error) || hint}`;
  process.stderr.write(`wirewatch: ${printable(cleanText(refused ? message : fault))}\n`);
  if (debug) process.stderr.write(`${printable(cleanText(inspect(error)))}\n`);
  if (refused) return EXIT_BY_CODE[error.code] ?? EXIT_FAILED;
  return isDamage(error) ? EXIT_CONFIGURATION : EXIT_FAILED;
}

/** The next step after an error of the machine; empty for an error in the program. */
function adviceOn(error: unknown): string {
  if (isDamage(error))
    return '. Stop Wirewatch, find out what is damaged with "wirewatch verify", and restore a backup: wirewatch restore BACKUP --replace';
  if (isDiskFull(error)) return '. Free space and try again.';
  return isForbidden(error) || isErrorCode(error, 'EROFS')
    ? '. Run the command as the user that owns the data folder, or give the current user access.'
    : '';
}

/**
 * The command line as a tree of commander's commands.
 * @param isWanted whether to load a command; the others have only their line in the help. Loading all of them takes
 *   longer than most commands run.
 */
export async function createProgram(isWanted: (name: string) => boolean = () => true): Promise<Command> {
  const program = new Command('wirewatch');
  program.description(
    "Reports where a news agency's stories and photos were found. Reads export files from a drop folder, stores every match (a detection) with each revision (a version), and serves them over HTTP as a change stream.",
  );
  addCommonOptions(program);
  program.version(VERSION_TEXT, '--version', 'show the version, the commit and the runtime');
  addExamples(program, ['demo', 'setup', 'manual quick-start']);
  for (const [name, description] of Object.entries(COMMANDS)) {
    const command = program.command(name).description(description);
    if (!isWanted(name)) continue;
    const register = await load(name);
    register(command);
  }
  shareOptions(program, 'wirewatch');
  return program;
}

/** Configures errors and help of a command and all its subcommands. */
function shareOptions(command: Command, name: string): void {
  command
    .exitOverride()
    .configureHelp({ ...command.configureHelp(), showGlobalOptions: true })
    .configureOutput({
      outputError: (message, write) =>
        write(printable(cleanText(message.replace(/^error: /, 'wirewatch: ')))),
    })
    .helpOption('-h, --help', 'show this help')
    .showHelpAfterError(`Try: ${name} --help`);
  for (const child of command.commands) shareOptions(child, `${name} ${child.name()}`);
}
