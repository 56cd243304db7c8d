/**
 * The command line: the list of commands, what they share, and how each end becomes an exit code.
 *
 * A command is one file in this folder that exports `register(command)` and is loaded only when it is named. It throws
 * Refused for what the operator can fix, sets `process.exitCode` where it printed a result that is not good, and
 * otherwise returns.
 */
import { inspect } from 'node:util';
import { Command, CommanderError } from 'commander';
import { printable } from '../printable.ts';
import { isErrorCode, Refused, type RefusedCode } from '../refused.ts';
import { isDamage, isDiskFull, isForbidden } from '../store/database-errors.ts';
import { addCommonOptions, addExamples } from './options.ts';
import { versionText } from './version.ts';

/** A command of the table: what the help says of it, and its file, loaded only when the line names it. */
interface CommandEntry {
  readonly name: string;
  readonly description: string;
  readonly load: () => Promise<{ register: Register }>;
}

/**
 * Adds the command's arguments, options, subcommands and action.
 *
 * @param wholeProgram the command line with every command registered, for completion
 */
export type Register = (command: Command, wholeProgram: () => Promise<Command>) => void;

/** Every command, in the order of the help. */
const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'serve',
    description: 'run the appliance: read what is dropped, serve the Detection Reporting API',
    load: () => import('./serve.ts'),
  },
  {
    name: 'demo',
    description:
      'run the appliance with a sample agency, sample keys and exports that keep coming; prints calls to paste',
    load: () => import('./demo.ts'),
  },
  {
    name: 'account',
    description: 'add, show, change and remove the customers of this installation',
    load: () => import('./account.ts'),
  },
  {
    name: 'subscription',
    description: 'add, show, change and remove the subscriptions of accounts',
    load: () => import('./subscription.ts'),
  },
  {
    name: 'key',
    description: 'make, show, change and revoke the keys with which clients read',
    load: () => import('./key.ts'),
  },
  {
    name: 'window',
    description: 'the ten-minute windows of the exports, and what became of them',
    load: () => import('./window.ts'),
  },
  {
    name: 'ingest',
    description: 'what was read from the drop folder, and what waits there',
    load: () => import('./ingest.ts'),
  },
  {
    name: 'alert',
    description: 'what is not as it should be, and what to do about it',
    load: () => import('./alert.ts'),
  },
  {
    name: 'status',
    description: 'how things stand, on one screen: exports, files, alerts, keys, disks, backup',
    load: () => import('./status.ts'),
  },
  {
    name: 'console',
    description: 'print a link into the console of the running appliance; it works once, for ten minutes',
    load: () => import('./console.ts'),
  },
  {
    name: 'log',
    description: 'print the history as the log has it, or with --access who changed what: the audit trail',
    load: () => import('./log.ts'),
  },
  {
    name: 'backup',
    description: 'bring a backup folder up to date, or write one file, beside a running appliance or without',
    load: () => import('./backup.ts'),
  },
  {
    name: 'restore',
    description: 'put a backup into the data folder, while no appliance runs on it, or rehearse that',
    load: () => import('./restore.ts'),
  },
  {
    name: 'verify',
    description:
      'check the data folder, also beside a running appliance, or a backup; exit code 1 when something is wrong',
    load: () => import('./verify.ts'),
  },
  {
    name: 'rebuild',
    description:
      'make detections.db anew from its log, or with --log the logs from the databases, while no appliance runs',
    load: () => import('./rebuild.ts'),
  },
  {
    name: 'pull',
    description: 'copy detections from a Detection Reporting API into a file, and keep the copy up to date',
    load: () => import('./pull.ts'),
  },
  {
    name: 'check',
    description:
      'is everything in order here? what to do if not; changes nothing, beside a running appliance too. Exit code 1 when something is bad',
    load: () => import('./check.ts'),
  },
  {
    name: 'healthcheck',
    description:
      'exit code 0 when the running appliance is healthy, 1 with a line that says why when it is not; silent otherwise',
    load: () => import('./healthcheck.ts'),
  },
  {
    name: 'setup',
    description: 'write a commented configuration and, where systemd is there, a hardened service unit',
    load: () => import('./setup.ts'),
  },
  {
    name: 'sample',
    description:
      'print a sample file for nginx, certbot, logrotate, Prometheus or Grafana; without one, list them',
    load: () => import('./sample.ts'),
  },
  {
    name: 'generate',
    description: 'write sample export files of any size; the same arguments give the same bytes',
    load: () => import('./generate.ts'),
  },
  {
    name: 'openapi',
    description: 'print the OpenAPI 3.1 document of what the appliance serves',
    load: () => import('./openapi.ts'),
  },
  {
    name: 'manual',
    description: 'read the manual, offline; without a topic, list the topics',
    load: () => import('./manual.ts'),
  },
  {
    name: 'completion',
    description: 'print what makes bash, zsh or fish complete commands and options',
    load: () => import('./completion.ts'),
  },
  {
    name: 'licenses',
    description: 'print the licences of everything that is inside',
    load: () => import('./licenses.ts'),
  },
  {
    name: 'version',
    description: 'show the version, the commit and the runtime',
    load: () => import('./version.ts'),
  },
];

export const EXIT_FAILED = 1;
export const EXIT_USAGE = 2;
/** EX_CONFIG of sysexits.h: a service manager should not try again before somebody mends it. */
export const EXIT_CONFIGURATION = 78;

const EXIT_BY_CODE: Record<RefusedCode, number> = {
  usage: EXIT_USAGE,
  invalid_request: EXIT_USAGE,
  configuration: EXIT_CONFIGURATION,
  failed: EXIT_FAILED,
  unauthorized: EXIT_FAILED,
  forbidden: EXIT_FAILED,
  not_found: EXIT_FAILED,
  method_not_allowed: EXIT_FAILED,
  content_too_large: EXIT_FAILED,
  rate_limited: EXIT_FAILED,
  daily_allowance: EXIT_FAILED,
  unavailable: EXIT_FAILED,
};

/**
 * Runs one command line.
 *
 * @param args without the runtime and the script
 * @returns the exit code; the reason of a bad one is on stderr by then
 */
export async function run(args: readonly string[]): Promise<number> {
  try {
    const program = await createProgram((name) => args.includes(name));
    await program.parseAsync(args, { from: 'user' });
    return typeof process.exitCode === 'number' ? process.exitCode : 0;
  } catch (error) {
    // commander has printed its message, or the help or version that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
    return reportEnd(error);
  }
}

/** Says on stderr why a command ended, and gives the exit code: a refusal in full, a fault in one line. */
export function reportEnd(error: unknown): number {
  const debug = process.env.WIREWATCH_DEBUG === '1';
  const refused = error instanceof Refused;
  const message = error instanceof Error ? error.message || error.name : String(error);
  const advice = adviceOn(error);
  const source = debug ? '' : ' (WIREWATCH_DEBUG=1 shows where this comes from)';
  const fault = `${message.replace(/\s*\n\s*/g, ' ')}${advice || source}`;
  process.stderr.write(`wirewatch: ${printable(refused ? message : fault)}\n`);
  if (debug) process.stderr.write(`${printable(inspect(error))}\n`);
  if (refused) return EXIT_BY_CODE[error.code];
  return isDamage(error) ? EXIT_CONFIGURATION : EXIT_FAILED;
}

/** What to do about a fault of the machine; nothing for one of the program. */
function adviceOn(error: unknown): string {
  if (isDamage(error))
    return '. Stop the appliance, see what is left with "wirewatch verify", and restore a backup: wirewatch restore BACKUP --replace';
  if (isDiskFull(error)) return '. Make room and try again.';
  return isForbidden(error) || isErrorCode(error, 'EROFS')
    ? '. Run it as the user of the appliance, or give this user the right to it.'
    : '';
}

/**
 * The command line as commander's tree.
 *
 * @param isWanted names the commands that are loaded; the others have only their line in the help. Loading all of them
 *   takes longer than most commands run.
 */
export async function createProgram(isWanted: (name: string) => boolean = () => true): Promise<Command> {
  const program = new Command('wirewatch');
  program.description(
    "Reports where a news agency's stories and photos were found: export files in, a change stream out.",
  );
  addCommonOptions(program);
  program.version(versionText(), '--version', 'show the version, the commit and the runtime');
  addExamples(program, ['version', 'help version']);
  for (const { name, description, load } of COMMANDS) {
    const command = program.command(name).description(description);
    if (!isWanted(name)) continue;
    const { register } = await load();
    register(command, () => createProgram());
  }
  settle(program, 'wirewatch');
  return program;
}

/** All options that are missing, where commander's message has the first one only. */
function explained(command: Command, message: string): string {
  if (!message.startsWith('error: required option ')) return message.replace(/^error: /, 'wirewatch: ');
  const missing = command.options.filter(
    (option) => option.mandatory && command.getOptionValue(option.attributeName()) === undefined,
  );
  const width = Math.max(...missing.map(({ flags }) => flags.length));
  const lines = missing.map(({ flags, description }) => `\n  ${flags.padEnd(width)}  ${description}`);
  return `wirewatch: required ${missing.length === 1 ? 'option' : 'options'} missing:${lines.join('')}\n`;
}

/** Puts what all commands share on every one of them, however a command made its own subcommands. */
function settle(command: Command, name: string): void {
  command
    .exitOverride()
    .configureHelp({ ...command.configureHelp(), showGlobalOptions: true })
    .configureOutput({
      outputError: (message, write) => write(printable(explained(command, message))),
    })
    .helpOption('-h, --help', 'show this help')
    .showHelpAfterError(`Try: ${name} --help`);
  for (const child of command.commands) settle(child, `${name} ${child.name()}`);
}
