/**
 * The log: one JSON object a line, with `level`, `time` (ISO 8601) and `msg`, on stderr or in a file; on a terminal
 * lines for people. The one door to pino and pino-pretty.
 *
 * Secrets never reach it: whatever is named like one is blotted out, at any depth, also in a child's fields,
 * and so is a secret that stands in an address or in an Authorization value. Errors are written as `type`,
 * `message`, `code`, `stack` and `cause`, and none of the other members that libraries hang on them.
 */
import {
  type Bindings,
  type ChildLoggerOptions,
  type DestinationStream,
  type Logger as PinoLogger,
  pino,
} from 'pino';
import { LogOutput, openLogFile } from './log-output.ts';
import { printable } from './printable.ts';
import { Refused, reasonOf } from './refused.ts';

export type Logger = PinoLogger;

export interface LogOptions {
  /** `[log] level`, or `silent` */
  readonly level: string;
}

export interface LogFileOptions extends LogOptions {
  /** `[log] file`: absolute; empty for stderr */
  readonly file: string;
  readonly terminal: TerminalOptions;
}

export interface TerminalOptions {
  /** Called before each line: what is drawn there has to make room. */
  readonly beforeLine: () => void;
}

export interface Log {
  readonly log: Logger;
  readonly kind: 'terminal' | 'stderr' | 'file';
  /** Opens the file by its name again: it was renamed to make room. No line is lost; without a file nothing happens. */
  reopen(): void;
}

const STDERR = 2;

const REDACTED = '[redacted]';
const DEPTH_MAX = 6;
const ITEMS_MAX = 100;
const SECRET_NAME = /(^|_)(authorization|key|secret|token|signature|password)$/;
const SECRET_IN_TEXT = /((?:[?&](?:\w*_)?(?:signature|token|key|secret)=)|\b(?:Bearer|Basic) )[\w~+/=.%-]+/gi;

/** A logger that writes JSON to stderr; what it has taken is written before the process exits. */
export function createLogger({ level }: LogOptions): Logger {
  return writeLines(level, STDERR, () => {}).log;
}

/**
 * The appliance's log: in a file where one is named, else for people where stderr is a terminal, else JSON on stderr.
 *
 * @throws Refused `configuration` when the file cannot be opened
 */
export async function openLog({ level, file, terminal }: LogFileOptions): Promise<Log> {
  const reopen = () => {};
  if (file !== '') return openFileLog(level, file);
  if (process.stderr.isTTY) return { log: await terminalLogger(level, terminal), kind: 'terminal', reopen };
  return { log: createLogger({ level }), kind: 'stderr', reopen };
}

function openFileLog(level: string, file: string): Log {
  const { log, output } = writeLines(level, openedFile(file), (error) => {
    process.stderr.write(
      `wirewatch: cannot write to the log file ${file}: ${error.message}. Wirewatch keeps trying.\n`,
    );
  });
  const reopen = () => {
    try {
      output.switchTo(openLogFile(file));
    } catch (error) {
      log.warn({ err: error, file }, 'cannot reopen the log file: lines still go to the previous file');
    }
  };
  return { log, kind: 'file', reopen };
}

function openedFile(file: string): number {
  try {
    return openLogFile(file);
  } catch (error) {
    const reason = reasonOf(error, file);
    throw new Refused(
      'configuration',
      `[log] file: cannot open ${file}: ${reason}. Create its folder and make it writable for this user, or name another file.`,
      { cause: error },
    );
  }
}

function writeLines(
  level: string,
  fd: number,
  onFailure: (error: Error) => void,
): { log: Logger; output: LogOutput } {
  const onLost = (lines: number) => log.warn({ lines }, 'log lines were lost: the log could not be written');
  const output = new LogOutput(fd, { onFailure, onLost });
  const log = loggerOn(level, output);
  return { log, output };
}

/** Loaded only here: who reads JSON need not wait for what makes it pretty. */
async function terminalLogger(level: string, { beforeLine }: TerminalOptions): Promise<Logger> {
  const { default: pretty } = await import('pino-pretty');
  const format = pretty.prettyFactory({
    colorize: process.stderr.hasColors(),
    translateTime: 'SYS:HH:MM:ss Z',
    singleLine: true,
  });
  return loggerOn(level, {
    write: (line: string) => {
      beforeLine();
      const shown = JSON.parse(line, (_, value: unknown) =>
        typeof value === 'string' ? printable(value) : value,
      );
      process.stderr.write(format(shown));
    },
  });
}

function loggerOn(level: string, output: DestinationStream): Logger {
  const logger = pino(
    {
      level,
      base: null,
      timestamp: timeMember,
      formatters: { level: (label) => ({ level: label }), log: withoutSecrets },
      // Errors are plain already when serializers run; pino's own would add every member of the error again.
      serializers: { err: (value: unknown) => value },
    },
    output,
  );
  outputs.set(logger, output);
  // pino does not pass a child's fields through the formatter; without this a secret among them is written.
  const child = Reflect.get(logger, 'child');
  Object.defineProperty(logger, 'child', {
    value(this: Logger, fields: Bindings, options?: ChildLoggerOptions) {
      return Reflect.apply(child, this, [withoutSecrets(fields), options]);
    },
  });
  return logger;
}

/** As `stdTimeFunctions.isoTime`, which makes it anew for each of the lines of one millisecond. */
function timeMember(): string {
  const nowMs = Date.now();
  if (nowMs !== lastTime.ms) lastTime = { ms: nowMs, member: `,"time":"${new Date(nowMs).toISOString()}"` };
  return lastTime.member;
}

let lastTime = { ms: Number.NaN, member: '' };

/** Where the loggers made here write to. */
const outputs = new WeakMap<Logger, DestinationStream>();

/**
 * Writes what `log.info(fields, msg)` writes, in a third of the time: there is a line for every request.
 *
 * @param fields without secrets: they are written as they are; what is undefined is left out
 */
export function logInfo(
  log: Logger,
  fields: Readonly<Record<string, string | number | undefined>>,
  msg: string,
): void {
  const output = outputs.get(log);
  // Another, or a child with fields of its own.
  if (output === undefined) log.info(fields, msg);
  else if (log.isLevelEnabled('info')) {
    const line = JSON.stringify(fields).slice(1, -1);
    output.write(`{"level":"info"${timeMember()},${line},"msg":${JSON.stringify(msg)}}\n`);
  }
}

/** The fields of a line without what is secret; errors as plain objects. */
export function withoutSecrets(fields: Record<string, unknown>): Record<string, unknown> {
  return cleanMembers(fields, 0);
}

function cleanMembers(fields: object, depth: number): Record<string, unknown> {
  const clean: [string, unknown][] = [];
  for (const [name, value] of Object.entries(fields)) {
    const bare = value === null || value === undefined || typeof value === 'boolean';
    clean.push([name, !bare && isSecretName(name) ? REDACTED : cleanValue(value, depth)]);
  }
  return Object.fromEntries(clean);
}

function cleanValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return cleanText(value);
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  if (depth >= DEPTH_MAX) return '[too deep]';
  if (value instanceof Error) return plainError(value, depth);
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (value instanceof Map || value instanceof Set) return cleanValue([...value], depth);
  if (!Array.isArray(value)) return cleanMembers(value, depth + 1);
  const items = value.slice(0, ITEMS_MAX).map((item) => cleanValue(item, depth + 1));
  return value.length > ITEMS_MAX ? [...items, `[${value.length - ITEMS_MAX} more]`] : items;
}

function plainError(error: Error, depth: number): Record<string, unknown> {
  const code = 'code' in error ? error.code : undefined;
  return {
    type: error.name,
    message: cleanText(error.message),
    ...(code === undefined ? {} : { code }),
    stack: cleanText(error.stack ?? ''),
    ...(error.cause === undefined ? {} : { cause: cleanValue(error.cause, depth + 1) }),
  };
}

/** A text without the secrets that stand in an address or in an Authorization value. */
export function cleanText(text: string): string {
  // Neither form of a secret is without one of these, and most texts are: this is done for every request.
  if (!text.includes('=') && !text.includes(' ')) return text;
  return text.replace(SECRET_IN_TEXT, `$1${REDACTED}`);
}

/** `Authorization`, `x-api-key`, `clientSecret`, `access_token`; but not `key_id`. */
function isSecretName(name: string): boolean {
  const known = judgedNames.get(name);
  if (known !== undefined) return known;
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase();
  const isSecret = SECRET_NAME.test(words);
  if (judgedNames.size < NAMES_KEPT_MAX) judgedNames.set(name, isSecret);
  return isSecret;
}

/** Names of fields are few, and the same in every line. */
const judgedNames = new Map<string, boolean>();
const NAMES_KEPT_MAX = 1000;
