/**
 * Every setting of the appliance: its type, range, default and meaning, once.
 *
 * The static type, the checks, the annotated configuration file and the manual are all made from this table.
 * A section or a setting that is not in it is refused, so that nothing an operator wrote is ignored. Besides the members of
 * JSON Schema, `is` is a further test of a text, and `isPath` tells whether it is a path, which is made absolute.
 */
import { type Static, type StringOptions, type TSchema, Type } from '@sinclair/typebox';
import { isAddressOrNetwork } from '../addresses.ts';
import { KEY_PREFIX, KEY_PREFIX_FORM } from '../auth/key-form.ts';
import { BUCKET_ADDRESS, isBucket } from '../copy/place.ts';
import { grouped } from '../counted.ts';
import { perExport } from '../detection/content-type.ts';
import { parseInstant } from '../time.ts';
import { exportSettings, section, textOrNone } from './export-settings.ts';
import { isAddress, isBaseUrl, isOrigin, NO_PROXY } from './option-values.ts';

/** Far above any sensible rate: a test can turn a rate limit off. */
const RATE_MAX = 1_000_000_000;
const PORT_MAX = 65_535;
const CONNECTIONS_MAX = 1_000_000;

export const HOST_EXPECTED = 'an address or host name to listen on, such as 127.0.0.1, :: or localhost';
export const PATH_EXPECTED = 'a path; a relative one starts at the folder of this file';

const isPath = (text: string) => text !== '';

/** A file or a folder; the description says what empty means. */
const pathSetting = (description: string) =>
  Type.String({ maxLength: 4096, isPath, expected: PATH_EXPECTED, default: '', description });

const hostSetting = (description: string) =>
  Type.String({ is: isAddress, expected: HOST_EXPECTED, default: '127.0.0.1', description });

const whole = ([minimum, maximum, usual]: readonly [number, number, number], description: string) =>
  Type.Integer({ minimum, maximum, default: usual, description });

/** Settings that are on, or off, by default. */
const on = (description: string) => Type.Boolean({ default: true, description });
const off = (description: string) => Type.Boolean({ default: false, description });

/** @param item of it, each a text */
const listOf = (item: StringOptions, description: string) =>
  Type.Array(Type.String(item), { maxItems: 100, default: [], description });

const LEVELS = (['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const).map((level) =>
  Type.Literal(level),
);

export const SETTINGS_SCHEMA = section({
  server: section({
    host: hostSetting('Address to listen on; 0.0.0.0 or :: listens on every interface.'),
    port: whole([0, PORT_MAX, 8080], 'Port to listen on; 0 picks a free one.'),
    base_url: textOrNone(
      isBaseUrl,
      'empty, or an absolute http or https address without user name, query or fragment, such as https://api.example.com',
      'Public address that clients use; empty means the listening address.',
    ),
    trusted_proxies: listOf(
      {
        is: (text: string) => text === NO_PROXY || isAddressOrNetwork(text),
        expected: 'an IP address, a network such as 10.0.0.0/8 or fd00::/8, or "none"',
      },
      'Proxies whose X-Forwarded-For header is trusted. If empty, those on this machine when host is a loopback address, and no proxy otherwise; "none": no proxy.',
    ),
    tls_certificate: pathSetting(
      'PEM file with the certificate, followed by any intermediate certificates. With tls_key, it turns on HTTPS. Renewed files are loaded without a restart.',
    ),
    tls_key: pathSetting('PEM file with the private key of the certificate, without a passphrase.'),
    compression: on('Whether answers over 1 KiB are compressed (gzip, zstd) for clients that accept it.'),
    discovery: on(
      'Whether GET /v1/openapi.json and GET /.well-known/oauth-authorization-server are answered, to anyone.',
    ),
    cors_origins: listOf(
      {
        is: (text: string) => text === '*' || isOrigin(text),
        expected: 'an origin such as https://dashboard.example.org, or "*"',
      },
      'Origins of web pages that may call the API from a browser. Empty: none. "*": every page; it still needs a key.',
    ),
    max_connections: whole(
      [1, CONNECTIONS_MAX, 1000],
      'Maximum number of open connections, on each port. A further one closes the one that has waited longest for a complete request.',
    ),
    max_connections_per_address: whole(
      [1, CONNECTIONS_MAX, 100],
      'Maximum number of open connections from one address (with IPv6, from one /64 network), enforced like max_connections. Trusted proxies are exempt.',
    ),
  }),
  exports: section(perExport(exportSettings)),
  ingest: section({
    drop: pathSetting('Folder that receives the export files; empty means drop in the data folder.'),
    quiet_ms: whole(
      [0, 3_600_000, 500],
      'Milliseconds that a dropped file must stay unchanged before it is read.',
    ),
    truncated_seconds: Type.Number({
      exclusiveMinimum: 0,
      maximum: 86_400,
      default: 60,
      description:
        'Seconds to wait for the rest of a truncated compressed file before it fails, counted from its last change.',
    }),
    rescan_seconds: Type.Number({
      exclusiveMinimum: 0,
      maximum: 3600,
      default: 5,
      description:
        'Seconds between two scans of the drop folder, for file systems that do not report new files.',
    }),
    require_trailer: off('Whether an NDJSON file must end with an end_of_export line.'),
    bad_rows: Type.Union([Type.Literal('fail'), Type.Literal('skip')], {
      default: 'fail',
      description:
        'What one bad row does. "fail": it rejects the whole file. "skip": it is written to a file beside the archived one; more than 100 bad rows, if over a tenth of all, still reject the file.',
    }),
    failed_windows: Type.Union([Type.Literal('hold'), Type.Literal('read')], {
      default: 'hold',
      description:
        'A file that arrives for a failed window. "hold": it is held until you reset the window. "read": it is read at once.',
    }),
    archive_days: whole(
      [0, 36_500, 0],
      'Days after which archived files are deleted, but none in the first hour after a start; 0 keeps them forever.',
    ),
    earliest_time: textOrNone(
      (text) => text.endsWith('Z') && parseInstant(text) !== null,
      'a time in UTC with Z, such as 2000-01-01T00:00:00Z, or nothing',
      'A row with an earlier first_detected_at is a bad row. Empty: five years before the start of the window; of a backfill, before it is read.',
    ),
  }),
  photos: section({
    folder: pathSetting(
      'Folder of the photos that Wirewatch serves, each named by its source_internal_id, such as 9002.jpg. Empty means photos in the data folder.',
    ),
  }),
  limits: section({
    requests_per_minute: whole(
      [1, RATE_MAX, 120],
      'Requests per minute and key; further ones are refused with 429.',
    ),
    token_requests_per_minute: whole(
      [1, RATE_MAX, 10],
      'Requests per minute to the token endpoint, for each client id and for each address.',
    ),
    unseen_key_ids_per_minute: whole(
      [1, RATE_MAX, 30],
      'Requests per minute that one address may send with key ids not used from it in the last 24 hours.',
    ),
    daily_rows: whole(
      [1, 1_000_000_000_000, 1_000_000],
      'Rows that an account may read per UTC day, unless the account has its own allowance.',
    ),
  }),
  keys: section({
    prefix: Type.String({
      pattern: `^${KEY_PREFIX}$`,
      expected: KEY_PREFIX_FORM,
      default: 'ww',
      description: 'First part of every new key; existing keys stay valid.',
    }),
  }),
  copy: section({
    to: Type.String({
      maxLength: 4096,
      isPath: (text: string) => isPath(text) && !isBucket(text),
      is: (text: string) => !isBucket(text) || BUCKET_ADDRESS.test(text),
      expected: 'a path, or s3://bucket/prefix with letters, digits, - and _, or nothing',
      default: '',
      description:
        'Where a copy is kept: a folder on another disk or a share, or s3://bucket/prefix; empty means none.',
    }),
    wait: off(
      'Whether a change is shown only once the copy has it. Then ingest waits while the copy cannot be written.',
    ),
    standby: off(
      'Whether this machine follows the copy of another one and serves reads, until "wirewatch promote" makes it the writer.',
    ),
    endpoint: textOrNone(
      (text) => /^https?:\/\/[^\s/@?#]+$/.test(text),
      'an address such as https://s3.example.org:9000, or nothing',
      'Address of the S3 service; empty means that of Amazon.',
    ),
    region: Type.String({
      pattern: '^[A-Za-z0-9-]{1,64}$',
      expected: 'the name of a region, such as us-east-1',
      default: 'us-east-1',
      description: 'Region of the S3 bucket. Most services other than Amazon accept any.',
    }),
    credentials: pathSetting(
      'File with the S3 access key in its first line and its secret in the second; empty means the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.',
    ),
  }),
  verify: section({
    every_hours: whole(
      [0, 8760, 24],
      'Hours between checks of detections.db against its log; 0 turns them off.',
    ),
  }),
  alerts: section({
    command: {
      ...listOf(
        { minLength: 1, maxLength: 4096 },
        'Program to run when an alert opens or closes, followed by its arguments; empty runs nothing. It gets the alert as JSON on stdin, and is killed after 30 seconds.',
      ),
      secret: true,
    },
  }),
  log: section({
    level: Type.Union(LEVELS, { default: 'info', description: 'Lowest level of the lines that are logged.' }),
    file: pathSetting(
      'File that log lines are appended to, reopened on SIGHUP; empty means stderr. Its folder must exist.',
    ),
  }),
  admin: section({
    host: hostSetting(
      'Address to serve the console and metrics on. Any other than a loopback address needs TLS.',
    ),
    port: whole(
      [0, PORT_MAX, 0],
      'Port for the console and metrics; 0 turns them off. "wirewatch console" prints a link into the console.',
    ),
    tls_certificate: pathSetting(
      'PEM file with the certificate for this port. If empty and host is not a loopback address, the certificate of [server] is used.',
    ),
    tls_key: pathSetting('PEM file with the private key of that certificate, without a passphrase.'),
  }),
});

export type Settings = Static<typeof SETTINGS_SCHEMA>;

/** The settings that are also flags of `serve`, `demo`, `check` and `setup`. */
export const FLAGS = [
  { option: 'drop', flag: '--drop', setting: 'ingest.drop' },
  { option: 'host', flag: '--host', setting: 'server.host' },
  { option: 'port', flag: '--port', setting: 'server.port' },
  { option: 'baseUrl', flag: '--base-url', setting: 'server.base_url' },
] as const;

export type SettingFlags = Partial<Record<(typeof FLAGS)[number]['option'], string | undefined>>;

export type Setting = {
  section: string;
  name: string;
  path: string;
  variable: string;
  flag: string | null;
  description: string;
  schema: TSchema;
};

export const SETTINGS: readonly Setting[] = listSettings(SETTINGS_SCHEMA, '');

/** What a value must be, in plain English, to follow "expected". */
export function expectation(schema: TSchema): string {
  if (typeof schema.expected === 'string') return schema.expected;
  if (Array.isArray(schema.anyOf))
    return `one of ${schema.anyOf.map((literal: TSchema) => JSON.stringify(literal.const)).join(', ')}`;
  if (schema.type === 'array') return `a list in which each item is ${expectation(schema.items)}`;
  if (schema.type === 'boolean') return 'true or false';
  if (schema.type === 'integer')
    return `a whole number from ${grouped(schema.minimum)} to ${grouped(schema.maximum)}`;
  if (schema.type === 'number')
    return `a number above ${schema.exclusiveMinimum}, up to ${grouped(schema.maximum)}`;
  return 'text';
}

function listSettings(schema: TSchema, section: string): Setting[] {
  const members: Record<string, TSchema> = schema.properties;
  return Object.entries(members).flatMap(([name, member]) => {
    const path = section === '' ? name : `${section}.${name}`;
    // A table that is one setting has a default.
    if (member.type === 'object' && member.default === undefined) return listSettings(member, path);
    return {
      section,
      name,
      path,
      variable: `WIREWATCH_${path.replaceAll('.', '_').toUpperCase()}`,
      flag: FLAGS.find(({ setting }) => setting === path)?.flag ?? null,
      description: member.description ?? '',
      schema: member,
    };
  });
}
