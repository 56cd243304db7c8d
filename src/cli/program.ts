/**
 * The command line: the list of commands, what they share, and how each end becomes an exit code.
 *
 * A command is one file in this folder that exports `register(program)`; it throws Refused for what the
 * operator can mend, sets `process.exitCode` where it printed a result that is not good, and otherwise returns.
 */
import { inspect } from 'node:util';
import { Command, CommanderError } from 'commander';
import { isErrorCode, Refused, type RefusedCode } from '../refused.ts';
import { isDamage, isDiskFull, isForbidden } from '../store/database.ts';
import * as account from './account.ts';
import * as alert from './alert.ts';
import * as backup from './backup.ts';
import * as check from './check.ts';
import * as demo from './demo.ts';
import * as generate from './generate.ts';
import * as healthcheck from './healthcheck.ts';
import * as ingest from './ingest.ts';
import * as key from './key.ts';
import * as licenses from './licenses.ts';
import * as manual from './manual.ts';
import * as openapi from './openapi.ts';
import { addCommonOptions, addExamples } from './options.ts';
import { printable } from './output.ts';
import * as pull from './pull.ts';
import * as restore from './restore.ts';
import * as serve from './serve.ts';
import * as setup from './setup.ts';
import * as subscription from './subscription.ts';
import * as verify from './verify.ts';
import * as version from './version.ts';
import * as window from './window.ts';

/** Every command, in the order of the help. */
const COMMANDS: readonly { register: (program: Command) => void }[] = [
  serve,
  demo,
  account,
  subscription,
  key,
  window,
  ingest,
  alert,
  backup,
  restore,
  verify,
  pull,
  check,
  healthcheck,
  setup,
  generate,
  openapi,
  manual,
  licenses,
  version,
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
    await createProgram().parseAsync(args, { from: 'user' });
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
    return '. Stop the appliance, see what is left with "wirewatch verify", and put a backup in its place: wirewatch restore FILE --replace';
  if (isDiskFull(error)) return '. Make room and try again.';
  return isForbidden(error) || isErrorCode(error, 'EROFS')
    ? '. Run it as the user of the appliance, or give this user the right to it.'
    : '';
}

/** The whole command line as commander's tree; also what the manual and its tests are made from. */
export function createProgram(): Command {
  const program = new Command('wirewatch');
  program.description(
    "Reports where a news agency's stories and photos were found: export files in, a change stream out.",
  );
  addCommonOptions(program);
  program.version(version.versionText(), '--version', 'show the version, the commit and the runtime');
  addExamples(program, ['version', 'help version']);
  for (const command of COMMANDS) command.register(program);
  settle(program, 'wirewatch');
  return program;
}

/** Puts what all commands share on every one of them, however a command made its own subcommands. */
function settle(command: Command, name: string): void {
  command
    .exitOverride()
    .configureHelp({ ...command.configureHelp(), showGlobalOptions: true })
    .configureOutput({
      outputError: (message, write) => write(printable(message.replace(/^error: /, `wirewatch: `))),
    })
    .helpOption('-h, --help', 'show this help')
    .showHelpAfterError(`Try: ${name} --help`);
  for (const child of command.commands) settle(child, `${name} ${child.name()}`);
}
