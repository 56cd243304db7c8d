/**
 * The log: one JSON object per line, with `level`, `time` (ISO 8601) and `msg`, on stderr or in a file; readable lines on
 * a terminal. The only user of pino and pino-pretty.
 *
 * Secrets are redacted: fields with a name like one, at any depth, and secrets in text (printable.ts). Errors are written
 * as `type`, `message`, `code`, `stack` and `cause`, without any other members.
 */
import { type DestinationStream, type Logger as PinoLogger, pino, stdTimeFunctions, symbols } from 'pino';
import { createLogOutput, openLogFile } from './log-output.ts';
import { cleanText, printable, REDACTED } from './printable.ts';
import { misconfigured, reasonOf } from './refused.ts';

export type Logger = PinoLogger;

const STDERR = 2;

const DEPTH_MAX = 6;
const SECRET_NAME = /(^|_)(authorization|key|secret|token|signature|password)$/;

/** A logger that writes JSON to stderr; all lines are written before the process exits. */
export const createLogger = ({ level }: { readonly level: string }): Logger =>
  writeLines(level, STDERR, () => {}).log;

/**
 * The log of the appliance: a file if one is configured, else readable lines on a terminal, else JSON on stderr.
 * @param level also `silent` @param file absolute; empty for stderr
 * @returns also what opens the file by its name again after it was renamed: no line is lost; without a file it does nothing
 * @throws Refused `configuration` if the file cannot be opened
 */
export async function openLog({ level, file }: Readonly<Record<'level' | 'file', string>>) {
  if (file === '') {
    const log = process.stderr.isTTY ? await terminalLogger(level) : createLogger({ level });
    return { log, reopen() {} };
  }
  const { log, output } = writeLines(level, openedFile(file), ({ message }) =>
    process.stderr.write(
      `wirewatch: cannot write to the log file ${file}: ${message}. Wirewatch keeps trying.\n`,
    ),
  );
  return {
    log,
    reopen() {
      try {
        output.switchTo(openLogFile(file));
      } catch (error) {
        log.warn({ err: error, file }, 'cannot reopen the log file: lines still go to the previous file');
      }
    },
  };
}

function openedFile(file: string): number {
  try {
    return openLogFile(file);
  } catch (error) {
    const reason = reasonOf(error, file);
    throw misconfigured(
      `[log] file: cannot open ${file}: ${reason}. Create its folder and make it writable for this user, or name another file.`,
      { cause: error },
    );
  }
}

function writeLines(level: string, fd: number, onFailure: (error: Error) => void) {
  const output = createLogOutput(fd, onFailure, (lines) =>
    log.warn({ lines }, 'log lines were lost: the log could not be written'),
  );
  const log: Logger = loggerOn(level, output);
  return { log, output };
}

/** Loads pino-pretty only for a terminal: it would delay every other start. */
async function terminalLogger(level: string): Promise<Logger> {
  const { default: pretty } = await import('pino-pretty');
  const format = pretty.prettyFactory({
    colorize: process.stderr.hasColors(),
    translateTime: 'SYS:HH:MM:ss Z',
    singleLine: true,
  });
  return loggerOn(level, {
    write: (line: string) => {
      const shown = JSON.parse(line, (_, value: unknown) =>
        typeof value === 'string' ? printable(value) : value,
      );
      process.stderr.write(format(shown));
    },
  });
}

function loggerOn(level: string, output: DestinationStream): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: withoutSecrets },
      // Errors are already plain here; pino's own serializer would add all their members again.
      serializers: { err: (value: unknown) => value },
    },
    output,
  );
}

/**
 * Writes the same line as `log.info(fields, msg)` in a third of the time, for the line of each request.
 * @param fields without secrets, since they are not redacted; undefined ones are left out
 */
export function logInfo(
  log: Logger,
  fields: Readonly<Record<string, string | number | undefined>>,
  msg: string,
): void {
  if (!log.isLevelEnabled('info')) return;
  const line = JSON.stringify(fields).slice(1, -1);
  const output: DestinationStream = Reflect.get(log, symbols.streamSym);
  output.write(`{"level":"info"${stdTimeFunctions.isoTime()},${line},"msg":${JSON.stringify(msg)}}\n`);
}

/** The fields of a line without secrets; errors as plain objects. @param depth of the fields in the line */
export function withoutSecrets(fields: object, depth = 0): Record<string, unknown> {
  const clean = Object.entries(fields).map(([name, value]) => {
    const isBare = value === null || value === undefined || typeof value === 'boolean';
    return [name, !isBare && isSecretName(name) ? REDACTED : cleanValue(value, depth)];
  });
  return Object.fromEntries(clean);
}

function cleanValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return cleanText(value);
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  if (depth >= DEPTH_MAX) return '[too deep]';
  if (value instanceof Error) return plainError(value, depth);
  return Array.isArray(value)
    ? value.map((item) => cleanValue(item, depth + 1))
    : withoutSecrets(value, depth + 1);
}

function plainError(error: Error, depth: number): Record<string, unknown> {
  const code = 'code' in error ? error.code : undefined;
  return {
    type: error.name,
    message: cleanText(error.message),
    ...(code !== undefined && { code }),
    stack: cleanText(error.stack ?? ''),
    ...(error.cause !== undefined && { cause: cleanValue(error.cause, depth + 1) }),
  };
}

/** `Authorization`, `x-api-key`, `clientSecret`, `access_token`; but not `key_id`. */
function isSecretName(name: string): boolean {
  const words = name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').replaceAll('-', '_');
  return SECRET_NAME.test(words.toLowerCase());
}
