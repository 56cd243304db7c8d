/**
 * Every setting of the appliance: its type, range, default and meaning, once.
 *
 * The static type, the checks, the annotated configuration file and the manual are all made from this table.
 * A section or a setting that does not stand here is refused, so that nothing an operator wrote is ignored.
 */
import { FormatRegistry, type Static, type TSchema, Type } from '@sinclair/typebox';
import { isAddress, isAddressOrNetwork, isBaseUrl, isOrigin, isUtcInstant, NO_PROXY } from './format.ts';

FormatRegistry.Set('setting-address', isAddress);
FormatRegistry.Set('setting-proxy', (text) => text === NO_PROXY || isAddressOrNetwork(text));
FormatRegistry.Set('setting-base-url', (text) => text === '' || isBaseUrl(text));
FormatRegistry.Set('setting-instant', isUtcInstant);
FormatRegistry.Set('setting-origin', (text) => text === '*' || isOrigin(text));

const closed = { additionalProperties: false };
/** Far above any sensible rate: a limit on everything, and still a way to switch a rate off for a test. */
const RATE_MAX = 1_000_000_000;

const Server = Type.Object(
  {
    host: Type.String({
      format: 'setting-address',
      expected: 'an address or host name to listen on, such as 127.0.0.1, :: or localhost',
      default: '127.0.0.1',
      description: 'Address to listen on; 0.0.0.0 or :: for every interface.',
    }),
    port: Type.Integer({
      minimum: 0,
      maximum: 65_535,
      default: 8080,
      description: 'Port to listen on; 0 picks a free one.',
    }),
    base_url: Type.String({
      format: 'setting-base-url',
      expected:
        'empty, or an absolute http or https address without user name, query or fragment, such as https://api.example.com',
      default: '',
      description: 'Address at which clients reach the appliance; empty means the listening address.',
    }),
    trusted_proxies: Type.Array(
      Type.String({
        format: 'setting-proxy',
        expected: 'an IP address, a network such as 10.0.0.0/8 or fd00::/8, or "none"',
      }),
      {
        maxItems: 100,
        default: [],
        description:
          'Addresses and networks (CIDR) of proxies whose X-Forwarded-For is believed; no one else is. Empty: programs on this machine, where host is an address of this machine alone, so that only a proxy here brings others; elsewhere no one. "none": no one.',
      },
    ),
    tls_certificate: Type.String({
      maxLength: 4096,
      default: '',
      description:
        'PEM file with the certificate, then those that lead to its root; together with tls_key it makes the appliance speak https. Renewed files are taken into use without a restart. A relative path counts from this file.',
    }),
    tls_key: Type.String({
      maxLength: 4096,
      default: '',
      description:
        'PEM file with the private key of the certificate, without a passphrase. A relative path counts from this file.',
    }),
    compression: Type.Boolean({
      default: true,
      description: 'Whether answers over 1 KiB are compressed (gzip, zstd) for clients that accept it.',
    }),
    cors_origins: Type.Array(
      Type.String({
        format: 'setting-origin',
        expected: 'an origin such as https://dashboard.example.org, or "*"',
      }),
      {
        maxItems: 100,
        default: [],
        description:
          'Origins of web pages that may call the API from a browser. Empty: none. "*": every page; it still needs a key.',
      },
    ),
    max_connections: Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      default: 1000,
      description:
        'Connections open at the same time. For a further one, the connection on which nothing was asked for longest is closed; without such a one, the new one.',
    }),
    max_connections_per_address: Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      default: 100,
      description:
        'Connections open at the same time from one address (of IPv6, a network of 64 bits), closed as by max_connections. Trusted proxies are exempt.',
    }),
  },
  closed,
);

function exportSwitch(fileWord: string) {
  return Type.Object(
    {
      enabled: Type.Boolean({
        default: true,
        description: `Whether ${fileWord} exports are expected. Off: it has no streams, its files are refused, as_of leaves it out.`,
      }),
    },
    closed,
  );
}

const Exports = Type.Object(
  { newswire: exportSwitch('newswire'), imagewire: exportSwitch('imagewire') },
  closed,
);

const Ingest = Type.Object(
  {
    drop: Type.String({
      maxLength: 4096,
      default: '',
      description:
        'Folder into which export files are dropped; empty means drop in the data folder. A relative path counts from this file.',
    }),
    quiet_ms: Type.Integer({
      minimum: 0,
      maximum: 3_600_000,
      default: 500,
      description: 'A dropped file is read once it has not changed for so many milliseconds.',
    }),
    truncated_seconds: Type.Number({
      exclusiveMinimum: 0,
      maximum: 86_400,
      default: 60,
      description: 'A compressed file that ends too early fails so many seconds after its last change.',
    }),
    rescan_seconds: Type.Number({
      exclusiveMinimum: 0,
      maximum: 3600,
      default: 5,
      description:
        'Seconds between two listings of the drop folder, for file systems that announce no changes.',
    }),
    require_trailer: Type.Boolean({
      default: false,
      description: 'Whether an NDJSON file must end with its end_of_export line.',
    }),
    bad_rows: Type.Union([Type.Literal('fail'), Type.Literal('skip')], {
      default: 'fail',
      description:
        'A row that is wrong makes its whole file fail, or is left out and written beside the archived file. If more than 100 rows and more than a tenth are wrong, the file fails all the same.',
    }),
    failed_windows: Type.Union([Type.Literal('hold'), Type.Literal('read')], {
      default: 'hold',
      description:
        'A file that arrives for a failed window is held until the window is reset, or is read at once.',
    }),
    archive_days: Type.Integer({
      minimum: 0,
      maximum: 36_500,
      default: 0,
      description: 'Days after which archived files are deleted; 0 keeps them for ever.',
    }),
    earliest_time: Type.String({
      format: 'setting-instant',
      expected: 'an instant with Z, such as 2000-01-01T00:00:00Z',
      default: '2000-01-01T00:00:00Z',
      description: 'A row whose first_detected_at lies before this instant is wrong.',
    }),
  },
  closed,
);

const Photos = Type.Object(
  {
    folder: Type.String({
      maxLength: 4096,
      default: '',
      description:
        'Folder with the photos that the appliance serves, each as ID.jpg, .jpeg, .png, .webp, .gif or .tif, where ID is its source_internal_id; empty means photos in the data folder. A relative path counts from this file.',
    }),
  },
  closed,
);

function perMinute(count: number, description: string) {
  return Type.Integer({ minimum: 1, maximum: RATE_MAX, default: count, description });
}

const Limits = Type.Object(
  {
    requests_per_minute: perMinute(120, 'Requests a minute and key, before 429.'),
    token_requests_per_minute: perMinute(
      10,
      'Requests a minute to the token endpoint, for each client id and for each address.',
    ),
    unseen_key_ids_per_minute: perMinute(30, 'Key ids not seen lately that one address may try in a minute.'),
    daily_rows: Type.Integer({
      minimum: 1,
      maximum: 1_000_000_000_000,
      default: 1_000_000,
      description: 'Rows that an account may read in a UTC day, where the account sets no number of its own.',
    }),
  },
  closed,
);

const Keys = Type.Object(
  {
    prefix: Type.String({
      pattern: '^[a-z][a-z0-9]{0,15}$',
      expected: 'a lower-case letter, then up to 15 lower-case letters or digits',
      default: 'ww',
      description: 'First part of every key made from now on; keys made before stay valid.',
    }),
  },
  closed,
);

const Backup = Type.Object(
  {
    folder: Type.String({
      maxLength: 4096,
      default: '',
      description:
        'Folder for the scheduled backup, best on another disk; empty means backups in the data folder. A relative path counts from this file.',
    }),
    every_minutes: Type.Integer({
      minimum: 0,
      maximum: 525_600,
      default: 0,
      description:
        'Minutes between two scheduled backups; 0 makes none. Each writes only what is new, so every minute is possible.',
    }),
    keep_days: Type.Integer({
      minimum: 0,
      maximum: 36_500,
      default: 30,
      description:
        'Days for which the backup keeps what it no longer needs: branches of another history, and segments of the log that a removal has rewritten.',
    }),
  },
  closed,
);

const Verify = Type.Object(
  {
    every_hours: Type.Integer({
      minimum: 0,
      maximum: 8760,
      default: 24,
      description:
        'Hours between two checks of detections.db against its log, in the background; 0 makes none. Each reads both completely.',
    }),
  },
  closed,
);

const Alerts = Type.Object(
  {
    command: Type.Array(Type.String({ minLength: 1, maxLength: 4096 }), {
      maxItems: 100,
      default: [],
      description:
        'Program that is run when an alert opens or closes, and its arguments; empty runs none. It gets the alert as a JSON object on its stdin, and is ended after 30 seconds. No shell reads it.',
    }),
  },
  closed,
);

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;

const Log = Type.Object(
  {
    level: Type.Union(
      LEVELS.map((level) => Type.Literal(level)),
      { default: 'info', description: 'Least important lines that are logged.' },
    ),
    file: Type.String({
      maxLength: 4096,
      default: '',
      description:
        'File to which lines are appended, opened anew on SIGHUP; empty means stderr. Its folder must exist. A relative path counts from this file.',
    }),
  },
  closed,
);

const Admin = Type.Object(
  {
    host: Type.String({
      format: 'setting-address',
      expected: 'an address or host name to listen on, such as 127.0.0.1, :: or localhost',
      default: '127.0.0.1',
      description:
        'Address on which metrics, status and manual are served. Whoever reaches it can read them: leave it on this machine, or guard it by other means.',
    }),
    port: Type.Integer({
      minimum: 0,
      maximum: 65_535,
      default: 0,
      description: 'Port for metrics, status and manual; 0 leaves them off.',
    }),
  },
  closed,
);

export const SETTINGS_SCHEMA = Type.Object(
  {
    server: Server,
    exports: Exports,
    ingest: Ingest,
    photos: Photos,
    limits: Limits,
    keys: Keys,
    backup: Backup,
    verify: Verify,
    alerts: Alerts,
    log: Log,
    admin: Admin,
  },
  closed,
);

/** All settings, in the names of the configuration file. */
export type Settings = Static<typeof SETTINGS_SCHEMA>;

/** Settings that are also flags of the commands that serve. */
export const FLAGS = new Map([
  ['server.host', '--host'],
  ['server.port', '--port'],
  ['server.base_url', '--base-url'],
  ['ingest.drop', '--drop'],
]);

/** One setting of the table, flat. */
export type Setting = {
  /** `server`, `exports.newswire`, … */
  section: string;
  name: string;
  /** `server.port`, … */
  path: string;
  /** `WIREWATCH_SERVER_PORT`, … */
  variable: string;
  /** `--port`, or null */
  flag: string | null;
  description: string;
  schema: TSchema;
};

/** Every setting, in the order of the table. */
export const SETTINGS: readonly Setting[] = listSettings(SETTINGS_SCHEMA, '');

/** What a value must be, in plain English, to follow "expected". */
export function expectation(schema: TSchema): string {
  if (typeof schema.expected === 'string') return schema.expected;
  if (Array.isArray(schema.anyOf)) {
    return `one of ${schema.anyOf.map((literal: TSchema) => JSON.stringify(literal.const)).join(', ')}`;
  }
  if (schema.type === 'array') return `a list in which each item is ${expectation(schema.items)}`;
  if (schema.type === 'boolean') return 'true or false';
  if (schema.type === 'integer') return `a whole number from ${schema.minimum} to ${schema.maximum}`;
  if (schema.type === 'number') return `a number above ${schema.exclusiveMinimum}, up to ${schema.maximum}`;
  return 'text';
}

function listSettings(schema: TSchema, section: string): Setting[] {
  const members: Record<string, TSchema> = schema.properties;
  return Object.entries(members).flatMap(([name, member]) => {
    const path = section === '' ? name : `${section}.${name}`;
    if (member.type === 'object') return listSettings(member, path);
    return {
      section,
      name,
      path,
      variable: `WIREWATCH_${path.replaceAll('.', '_').toUpperCase()}`,
      flag: FLAGS.get(path) ?? null,
      description: member.description ?? '',
      schema: member,
    };
  });
}
