/**
 * The effective settings: flag, then environment, then configuration file, then default.
 *
 * Every given value is checked, even if another one overrides it, and all problems are reported at once: an operator
 * who fixes one line should not learn of the next at the next start.
 */
import path from 'node:path';
import type { TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import { nearest } from '../nearest.ts';
import { listed, Refused } from '../refused.ts';
import { parseInstant } from '../time.ts';
import { type ConfigFile, readConfigFile } from './file.ts';
import { normalBaseUrl } from './format.ts';
import { isLoopback, isSamePlace, trustedProxies } from './listening.ts';
import { PRESEED_TABLES, type Preseed, readPreseed } from './preseed.ts';
import { isTable, plainValue, shown } from './raw-value.ts';
import { expectation, SETTINGS, SETTINGS_SCHEMA, type Setting, type Settings } from './schema.ts';

/** The flags that are settings, as typed. */
export type SettingFlags = {
  drop?: string | undefined;
  host?: string | undefined;
  port?: string | undefined;
  baseUrl?: string | undefined;
};

export type ConfigSources = {
  flags: SettingFlags;
  env: Readonly<Record<string, string | undefined>>;
  /** `--config`; wins over the variable WIREWATCH_CONFIG */
  file: string | undefined;
  /** absolute */
  dataFolder: string;
};

/**
 * The settings, with `ingest.drop`, `photos.folder` and `backup.folder` absolute, `log.file` absolute or empty,
 * `server.tls_certificate` and `server.tls_key` absolute or both empty, `server.base_url` in its one spelling, or
 * empty, and `server.trusted_proxies` the addresses and networks that are trusted in the end.
 */
export type Config = Settings & {
  dataFolder: string;
  /** absolute; null when there is none */
  configFile: string | null;
  /** `ingest.earliest_time` */
  earliestTimeMs: number;
  /** What a start creates if it is missing. */
  preseed: Preseed;
};

const DEFAULT_PREFIX: string = SETTINGS_SCHEMA.properties.keys.properties.prefix.default;
/** Other variables with our prefix are not ours: Kubernetes adds some for every service, named after it. */
const STRICT_VARIABLE =
  /^WIREWATCH_(SERVER|EXPORTS|INGEST|PHOTOS|LIMITS|KEYS|BACKUP|VERIFY|ALERTS|LOG|ADMIN)_/;

/** One value as given. */
type Given = {
  /** where, for a message: `--port`, `WIREWATCH_SERVER_PORT`, `FILE, [server] port` */
  place: string;
  value: unknown;
  /** the folder from which a relative path counts */
  folder: string;
};

/**
 * @throws Refused `configuration` with every problem: its place, what was expected, what was found
 */
export function loadConfig(sources: ConfigSources): Config {
  const configFile = readConfigFile(sources.file || sources.env.WIREWATCH_CONFIG, sources.dataFolder);
  const problems: string[] = [];
  const fromFile = new Map<string, Given>();
  if (configFile.kind === 'malformed') problems.push(configFile.problem);
  const { sections, tables } = divided(configFile);
  if (configFile.kind === 'read') collectTable(configFile, sections, SETTINGS_SCHEMA, '', fromFile, problems);
  problems.push(...unknownVariables(sources.env));

  const settings: Record<string, unknown> = {};
  /** The effective values of the settings that were given. */
  const holding = new Map<string, Given>();
  for (const setting of SETTINGS) {
    const given = [
      fromFlag(setting, sources.flags),
      fromVariable(setting, sources.env),
      fromFile.get(setting.path),
    ];
    const present = given.filter((one) => one !== undefined);
    for (const one of present) problems.push(...problemsOf(setting, one));
    const [first] = present;
    if (first !== undefined) holding.set(setting.path, first);
    put(settings, setting.path, first === undefined ? setting.schema.default : first.value);
  }
  const file = configFile.kind === 'none' ? null : configFile.file;
  const prefix = String(holding.get('keys.prefix')?.value ?? DEFAULT_PREFIX);
  const preseed = readPreseed({ file: file ?? '', tables, prefix }, problems);
  if (problems.length > 0) throw new Refused('configuration', listed(problems, 'settings are invalid'));
  return { ...resolved(settings, holding, file, sources.dataFolder), preseed };
}

function resolved(
  settings: unknown,
  holding: ReadonlyMap<string, Given>,
  configFile: string | null,
  dataFolder: string,
): Omit<Config, 'preseed'> {
  if (!Value.Check(SETTINGS_SCHEMA, settings)) throw new Error('the settings do not match their schema');
  const { server, ingest, photos, backup, log, admin } = settings;
  const earliestTimeMs = parseInstant(ingest.earliest_time);
  if (earliestTimeMs === null) throw new Error('earliest_time does not match its format');
  const pathOf = (setting: string, value: string, otherwise: string): string => {
    const given = value === '' ? undefined : holding.get(setting);
    return given === undefined ? otherwise : path.resolve(given.folder, value);
  };
  const folderOf = (setting: string, value: string, own: string): string =>
    pathOf(setting, value, path.join(dataFolder, own));
  requireBoth('server', server, holding);
  requireBoth('admin', admin, holding);
  requireApart(server, admin, holding);
  const dropFolder = folderOf('ingest.drop', ingest.drop, 'drop');
  if (dropFolder === path.resolve(dataFolder)) {
    const place = holding.get('ingest.drop')?.place ?? 'drop';
    throw new Refused(
      'configuration',
      `${place}: ${dropFolder} is the data folder itself; choose a separate folder`,
    );
  }
  const backupFolder = folderOf('backup.folder', backup.folder, 'backups');
  if (backupFolder === dropFolder || backupFolder === path.resolve(dataFolder)) {
    const place = holding.get('backup.folder')?.place ?? 'backup.folder';
    throw new Refused(
      'configuration',
      `${place}: ${backupFolder} is the ${backupFolder === dropFolder ? 'drop' : 'data'} folder itself; choose a separate folder`,
    );
  }
  const tlsOf = (section: 'server' | 'admin', { tls_certificate, tls_key }: TlsSettings): TlsSettings => ({
    tls_certificate: pathOf(`${section}.tls_certificate`, tls_certificate, ''),
    tls_key: pathOf(`${section}.tls_key`, tls_key, ''),
  });
  const serverTls = tlsOf('server', server);
  return {
    ...settings,
    server: {
      ...server,
      trusted_proxies: trustedProxies(server),
      base_url: server.base_url === '' ? '' : normalBaseUrl(server.base_url),
      ...serverTls,
    },
    admin: { ...admin, ...adminTls(admin, tlsOf('admin', admin), serverTls, holding) },
    ingest: { ...ingest, drop: dropFolder },
    photos: { folder: folderOf('photos.folder', photos.folder, 'photos') },
    backup: { ...backup, folder: backupFolder },
    log: { ...log, file: pathOf('log.file', log.file, '') },
    dataFolder,
    configFile,
    earliestTimeMs,
  };
}

type TlsSettings = Pick<Settings['server'], 'tls_certificate' | 'tls_key'>;

/** A certificate is useless without its key, and the key without it; and plain HTTP was not what was asked for. */
function requireBoth(
  section: 'server' | 'admin',
  { tls_certificate, tls_key }: TlsSettings,
  holding: ReadonlyMap<string, Given>,
): void {
  if ((tls_certificate === '') === (tls_key === '')) return;
  const [given, other] = tls_key === '' ? ['tls_certificate', 'tls_key'] : ['tls_key', 'tls_certificate'];
  const place = holding.get(`${section}.${given}`)?.place ?? given;
  throw new Refused(
    'configuration',
    `${place}: TLS also needs [${section}] ${other}. Set both, or neither for plain HTTP`,
  );
}

/** The pair with which the administration speaks TLS: its own, or beyond this machine that of the server. */
function adminTls(
  { host, port }: Settings['admin'],
  own: TlsSettings,
  server: TlsSettings,
  holding: ReadonlyMap<string, Given>,
): TlsSettings {
  if (own.tls_certificate !== '' || port === 0 || isLoopback(host)) return own;
  if (server.tls_certificate !== '') return server;
  const place = holding.get('admin.host')?.place ?? '[admin] host';
  throw new Refused(
    'configuration',
    `${place}: ${host} can be reached from other machines, so the console there needs TLS. Set [admin] tls_certificate and tls_key (or those of [server]), or leave [admin] host at 127.0.0.1 and reach it through an SSH tunnel`,
  );
}

/** Two servers cannot share one port. */
function requireApart(
  server: Settings['server'],
  admin: Settings['admin'],
  holding: ReadonlyMap<string, Given>,
): void {
  if (admin.port === 0 || admin.port !== server.port || !isSamePlace(admin.host, server.host)) return;
  const given = holding.get('admin.port') ?? holding.get('server.port');
  throw new Refused(
    'configuration',
    `${given?.place ?? 'port'}: [server] port and [admin] port are both ${admin.port}. Set [admin] port to a different one, such as 9464`,
  );
}

/** Separates the settings from what a start creates. `keys` can be either: TOML allows one of the two in a file. */
function divided(configFile: ConfigFile): { sections: object; tables: Readonly<Record<string, unknown>> } {
  if (configFile.kind !== 'read') return { sections: {}, tables: {} };
  const isPreseed = ([name, value]: [string, unknown]) =>
    PRESEED_TABLES.some((table) => table === name) && !(name === 'keys' && isTable(value));
  const entries = Object.entries(configFile.table);
  return {
    sections: Object.fromEntries(entries.filter((entry) => !isPreseed(entry))),
    tables: Object.fromEntries(entries.filter(isPreseed)),
  };
}

/** The values of a table of the file, by their path in the settings; what is unknown becomes a problem. */
function collectTable(
  source: Extract<ConfigFile, { kind: 'read' }>,
  table: object,
  schema: TSchema,
  section: string,
  found: Map<string, Given>,
  problems: string[],
): void {
  const members: Record<string, TSchema> = schema.properties;
  for (const [name, value] of Object.entries(table)) {
    const at = section === '' ? name : `${section}.${name}`;
    const member = Object.hasOwn(members, name) ? members[name] : undefined;
    if (member === undefined) problems.push(`${source.file}, ${unknownMember(section, name, value)}`);
    else if (member.type !== 'object') {
      const place = `${source.file}, [${section}] ${name}`;
      found.set(at, { place, value: plainValue(value), folder: path.dirname(source.file) });
    } else if (isTable(value)) collectTable(source, value, member, at, found, problems);
    else problems.push(`${source.file}, ${at}: expected a section [${at}], found ${shown(value)}`);
  }
}

function unknownMember(section: string, name: string, value: unknown): string {
  const at = section === '' ? name : `${section}.${name}`;
  if (isTable(value) || (Array.isArray(value) && value.some(isTable))) {
    const sections = new Set(SETTINGS.map((setting) => setting.section));
    const near = nearest(at, [...sections, ...PRESEED_TABLES], 2);
    const isEntry = near !== null && !sections.has(near);
    return `[${at}]: unknown section${near === null ? '' : `; did you mean ${isEntry ? `[[${near}]]` : `[${near}]`}?`}`;
  }
  const sameName = SETTINGS.find((setting) => setting.name === name)?.path;
  const paths = SETTINGS.map((setting) => setting.path);
  const near = SETTINGS.find((setting) => setting.path === (sameName ?? nearest(at, paths, 3)));
  const place = section === '' ? name : `[${section}] ${name}`;
  return `${place}: unknown setting${near === undefined ? '' : `; did you mean [${near.section}] ${near.name}?`}`;
}

function unknownVariables(env: ConfigSources['env']): string[] {
  const known = SETTINGS.map((setting) => setting.variable);
  return Object.keys(env)
    .filter(
      (variable) =>
        env[variable] !== undefined && STRICT_VARIABLE.test(variable) && !known.includes(variable),
    )
    .sort()
    .map((variable) => {
      return `${variable}: unknown setting; the closest known one is ${nearest(variable, known, Number.POSITIVE_INFINITY)}`;
    });
}

function fromFlag(setting: Setting, flags: SettingFlags): Given | undefined {
  const byFlag = new Map([
    ['--drop', flags.drop],
    ['--host', flags.host],
    ['--port', flags.port],
    ['--base-url', flags.baseUrl],
  ]);
  const text = setting.flag === null ? undefined : byFlag.get(setting.flag);
  if (setting.flag === null || text === undefined) return undefined;
  return { place: setting.flag, value: valueOfText(text, setting.schema), folder: process.cwd() };
}

function fromVariable(setting: Setting, env: ConfigSources['env']): Given | undefined {
  const text = env[setting.variable];
  if (text === undefined) return undefined;
  return { place: setting.variable, value: valueOfText(text, setting.schema), folder: process.cwd() };
}

/** Reads a text strictly as the setting's type; anything else stays text, and is refused as such. */
function valueOfText(text: string, schema: TSchema): unknown {
  switch (schema.type) {
    case 'integer':
      return /^-?(0|[1-9]\d{0,14})$/.test(text) ? Number(text) : text;
    case 'number':
      return /^-?(0|[1-9]\d{0,14})(\.\d{1,9})?$/.test(text) ? Number(text) : text;
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : text;
    case 'array':
      return text.trim() === '' ? [] : text.split(',').map((item) => item.trim());
    default:
      return text;
  }
}

function problemsOf(setting: Setting, { place, value }: Given): string[] {
  const { schema } = setting;
  if (fits(schema, value)) return [];
  if (Array.isArray(value) && schema.type === 'array') {
    const wrong = value.find((item) => !fits(schema.items, item));
    if (wrong !== undefined) return [`${place}: expected ${expectation(schema)}, found ${shown(wrong)}`];
    return [`${place}: expected at most ${schema.maxItems} items, found ${value.length}`];
  }
  return [`${place}: expected ${expectation(schema)}, found ${shown(value)}`];
}

function fits(schema: TSchema, value: unknown): boolean {
  return Value.Check(schema, value);
}

function put(settings: Record<string, unknown>, at: string, value: unknown): void {
  const [first = '', ...rest] = at.split('.');
  if (rest.length === 0) settings[first] = structuredClone(value);
  else {
    const inner: Record<string, unknown> = { ...(settings[first] ?? {}) };
    put(inner, rest.join('.'), value);
    settings[first] = inner;
  }
}

/** The exports that are switched on. */
export function enabledExports({ exports }: Pick<Config, 'exports'>): ReadonlySet<ExportName> {
  return new Set(EXPORT_NAMES.filter((name) => exports[name].enabled));
}
