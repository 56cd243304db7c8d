/**
 * The log: one JSON object a line on stderr, with `level`, `time` (ISO 8601) and `msg`. The one door to pino.
 *
 * Secrets never reach it: whatever is named like one is blotted out, at any depth, also in a child's fields,
 * and so is a secret that stands in an address or in an Authorization value. Errors are written as `type`,
 * `message`, `code`, `stack` and `cause`, and none of the other members that libraries hang on them.
 */
import {
  type Bindings,
  type ChildLoggerOptions,
  type Logger as PinoLogger,
  pino,
  stdTimeFunctions,
} from 'pino';

export type Logger = PinoLogger;

export type LogOptions = {
  /** `[log] level`, or `silent` */
  level: string;
  /** file descriptor; stderr unless told otherwise */
  fd?: number;
};

const WRITE_BYTES = 4096;
const WRITE_EVERY_MS = 50;

const REDACTED = '[redacted]';
const DEPTH_MAX = 6;
const ITEMS_MAX = 100;
const SECRET_NAME = /(^|_)(authorization|key|secret|token|signature|password)$/;
const SECRET_IN_TEXT = /((?:[?&](?:\w*_)?(?:signature|token|key|secret)=)|\b(?:Bearer|Basic) )[\w~+/=.%-]+/gi;

/** A logger; what it has taken is written before the process exits. */
export function createLogger({ level, fd = 2 }: LogOptions): Logger {
  // Lines are written together: a system call for each would cost a small request a third of its time.
  const destination = pino.destination({
    fd,
    sync: false,
    minLength: WRITE_BYTES,
    periodicFlush: WRITE_EVERY_MS,
  });
  const logger = pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: withoutSecrets },
      // Errors are plain already when serializers run; pino's own would add every member of the error again.
      serializers: { err: (value: unknown) => value },
    },
    destination,
  );
  // pino does not pass a child's fields through the formatter; without this a secret among them is written.
  const child = Reflect.get(logger, 'child');
  Object.defineProperty(logger, 'child', {
    value(this: Logger, fields: Bindings, options?: ChildLoggerOptions) {
      return Reflect.apply(child, this, [withoutSecrets(fields), options]);
    },
  });
  return logger;
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

function cleanText(text: string): string {
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
