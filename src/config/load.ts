/**
 * The effective settings: flag, then environment, then configuration file, then default.
 *
 * Every value is checked, even if another one overrides it, and all problems are reported at once: an operator who
 * fixes one line should not learn of the next problem at the next start.
 */
import path from 'node:path';
import type { TSchema } from '@sinclair/typebox';
import { Value, ValuePointer } from '@sinclair/typebox/value';
import { folderAround } from '../copy/place.ts';
import { EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import { nameParser } from '../exports/file-name.ts';
import { didYouMean } from '../nearest.ts';
import { listed, misconfigured } from '../refused.ts';
import { dataFolder as foldersIn, usedFolders } from '../store/folder.ts';
import { formatMs, parseInstant } from '../time.ts';
import type { HoldRules } from '../windows/ledger.ts';
import { exportShapes, refuseShapes } from './export-settings.ts';
import { readConfigFile, tableOfText } from './file.ts';
import { isLoopback, trustedProxies } from './listening.ts';
import { isTable, normalBaseUrl, plainValue, shown } from './option-values.ts';
import { PRESEED_TABLES, type Preseed, readPreseed } from './preseed.ts';
import { expectation, FLAGS, SETTINGS, SETTINGS_SCHEMA, type SettingFlags, type Settings } from './schema.ts';

export type ConfigSources = {
  flags: SettingFlags;
  env: Readonly<Record<string, string | undefined>>;
  /** `--config`; overrides the variable WIREWATCH_CONFIG */
  file: string | undefined;
  dataFolder: string;
};

/**
 * The settings, with `ingest.drop`, `photos.folder` absolute, `copy.to` absolute where it is a folder, `log.file` absolute or
 * empty, `tls_certificate` and `tls_key` absolute or both empty, `server.base_url` normalized or empty, and
 * `server.trusted_proxies` the addresses and networks that are trusted in the end.
 */
export type Config = Settings & {
  /** `ingest.earliest_time`, as the API writes times; null: it depends on the file. */
  earliestTime: string | null;
  dataFolder: string;
  /** absolute; null if there is none */
  configFile: string | null;
  /** What it was loaded with besides the environment, to load it again. */
  given: Pick<ConfigSources, 'flags' | 'file'>;
  /** What a start creates if it is missing. */
  preseed: Preseed;
};

type RawValue = {
  /** where, for a message: `--port`, `WIREWATCH_SERVER_PORT`, `FILE, [server] port` */
  place: string;
  /** a path is absolute */
  value: unknown;
};

/** Other variables that begin with WIREWATCH_ are ignored: Kubernetes adds some for each service, named after it. */
const STRICT_VARIABLE = new RegExp(
  `^WIREWATCH_(${Object.keys(SETTINGS_SCHEMA.properties).join('|').toUpperCase()})_`,
);

/** @throws Refused `configuration` with every problem: its place, what was expected, what was found */
export function loadConfig({ flags, env, file, dataFolder }: ConfigSources): Config {
  const configFile = readConfigFile(file || env.WIREWATCH_CONFIG, dataFolder);
  const problems = [...configFile.problems];
  const fromFile = new Map(valuesOf(configFile.file ?? '', configFile.table, problems));
  problems.push(...unknownVariables(env));

  const settings = {};
  const places = new Map<string, string>();
  for (const setting of SETTINGS) {
    const { schema } = setting;
    const flag = FLAGS.find((known) => known.setting === setting.path);
    const ofText = (place: string, text: string | undefined) =>
      text === undefined ? undefined : { place, value: absolute(schema, valueOfText(text, schema)) };
    const present = [
      flag && ofText(flag.flag, flags[flag.option]),
      ofText(setting.variable, env[setting.variable]),
      fromFile.get(setting.path),
    ].filter((value) => value !== undefined);
    for (const value of present) problems.push(...problemsOf(schema, value));
    const [effective] = present;
    if (effective !== undefined) places.set(setting.path, effective.place);
    const value = effective === undefined ? schema.default : effective.value;
    ValuePointer.Set(settings, pointerTo(setting.path), structuredClone(value));
  }
  const prefix = String(settingIn(settings, 'keys.prefix'));
  const preseed = readPreseed(configFile.file ?? '', configFile.table, prefix, problems);
  if (problems.length > 0) throw misconfigured(listed(problems, 'settings are invalid'));
  if (!Value.Check(SETTINGS_SCHEMA, settings)) throw new Error('the settings do not match their schema');
  return {
    ...resolve(settings, places, dataFolder),
    dataFolder,
    configFile: configFile.file,
    given: { flags: Object.fromEntries(FLAGS.map(({ option }) => [option, flags[option]])), file },
    preseed,
  };
}

/** The value, or the absolute path where it is one. @param folder where a relative path starts */
const absolute = (schema: TSchema, value: unknown, folder = process.cwd()): unknown =>
  typeof value === 'string' && schema.isPath?.(value) ? path.resolve(folder, value) : value;

/**
 * Completes the settings, and checks those that depend on each other: folders, TLS pairs.
 * @param places of the values that are not defaults, by setting
 * @throws Refused `configuration` with every problem
 */
function resolve(settings: Settings, places: ReadonlyMap<string, string>, dataFolder: string) {
  const { server, ingest, photos, copy, admin } = settings;
  const problems: string[] = [];
  const refuse = (setting: string, detail: string) =>
    problems.push(`${places.get(setting) ?? setting}: ${detail}`);
  refuseShapes(settings.exports, refuse);
  for (const section of ['server', 'admin'] as const) {
    const { tls_certificate, tls_key } = settings[section];
    // A certificate is useless without its key; plain HTTP was not what the operator wanted.
    if ((tls_certificate === '') !== (tls_key === '')) {
      const [set, other] = tls_key === '' ? ['tls_certificate', 'tls_key'] : ['tls_key', 'tls_certificate'];
      const detail = `TLS also needs [${section}] ${other}. Set both, or neither for plain HTTP`;
      refuse(`${section}.${set}`, detail);
    }
  }
  // Beyond this machine the administration port needs a certificate: its own, or that of the server.
  const isFar = admin.port !== 0 && !isLoopback(admin.host);
  const { tls_certificate, tls_key } = admin.tls_certificate === '' && isFar ? server : admin;
  if (isFar && tls_certificate === '')
    refuse(
      'admin.host',
      `${admin.host} can be reached from other machines, so the console there needs TLS. Set [admin] tls_certificate and tls_key (or those of [server]), or leave [admin] host at 127.0.0.1 and reach it through an SSH tunnel`,
    );
  const data = path.resolve(dataFolder);
  const drop = ingest.drop || path.join(dataFolder, 'drop');
  const photosFolder = photos.folder || path.join(dataFolder, 'photos');
  // By their paths alone: commands must not wait for a share that hangs. The start and the check look at the folders.
  if (usedFolders(foldersIn(data), photosFolder).includes(drop))
    refuse('ingest.drop', `${drop} has files of Wirewatch; choose a separate folder`);
  const around = folderAround(copy.to, { data, drop });
  if (around !== null)
    refuse(
      'copy.to',
      `${copy.to} is part of the ${around} folder; choose a folder elsewhere, preferably on another disk`,
    );
  for (const name of ['wait', 'standby'] as const)
    if (copy[name] && copy.to === '') refuse(`copy.${name}`, 'it needs [copy] to: where the copy is kept');
  if (problems.length > 0) throw misconfigured(listed(problems, 'settings are invalid'));
  const earliestMs = parseInstant(ingest.earliest_time);
  const base_url = server.base_url === '' ? '' : normalBaseUrl(server.base_url);
  return {
    ...settings,
    server: { ...server, trusted_proxies: trustedProxies(server), base_url },
    admin: { ...admin, tls_certificate, tls_key },
    ingest: { ...ingest, drop },
    photos: { folder: photosFolder },
    earliestTime: earliestMs === null ? null : formatMs(earliestMs),
  };
}

const NAMES = [...SETTINGS.flatMap(({ section, path }) => [path, section]), ...PRESEED_TABLES];

/** The values of a table of the file, by the path of their setting; anything unknown becomes a problem. */
function valuesOf(file: string, table: object, problems: string[], section = ''): [string, RawValue][] {
  return Object.entries(table).flatMap(([name, value]): [string, RawValue][] => {
    const at = section === '' ? name : `${section}.${name}`;
    const place = `${file}, ${section === '' ? name : `[${section}] ${name}`}`;
    const setting = SETTINGS.find((known) => known.path === at);
    if (setting !== undefined)
      return [[at, { place, value: absolute(setting.schema, plainValue(value), path.dirname(file)) }]];
    if (isSection(at) && isTable(value)) return valuesOf(file, value, problems, at);
    if (PRESEED_TABLES.some((table) => table === at)) return [];
    // In another section, perhaps.
    const elsewhere = SETTINGS.find((setting) => setting.name === name)?.path;
    problems.push(
      isSection(at)
        ? `${place}: expected a section [${at}], found ${shown(value)}`
        : `${place}: unknown setting${didYouMean(elsewhere ?? at, NAMES)}`,
    );
    return [];
  });
}

const isSection = (at: string): boolean =>
  SETTINGS.some(({ section }) => section === at || section.startsWith(`${at}.`));

function unknownVariables(env: ConfigSources['env']): string[] {
  const known = SETTINGS.map(({ variable }) => variable);
  return Object.keys(env)
    .filter((name) => env[name] !== undefined && STRICT_VARIABLE.test(name) && !known.includes(name))
    .map((name) => `${name}: unknown setting${didYouMean(name, known)}`);
}

/** Reads a text strictly as the setting's type; any other text stays text, which the check refuses. */
function valueOfText(text: string, schema: TSchema): unknown {
  switch (schema.type) {
    case 'integer':
      return /^-?(0|[1-9]\d{0,14})$/.test(text) ? Number(text) : text;
    case 'number':
      return /^-?(0|[1-9]\d{0,14})(\.\d{1,9})?$/.test(text) ? Number(text) : text;
    case 'boolean':
      return ['true', 'false'].includes(text) ? text === 'true' : text;
    case 'object':
      return plainValue(tableOfText(text));
    case 'array':
      return text.trim() === '' ? [] : text.split(',').map((item) => item.trim());
    default:
      return text;
  }
}

function problemsOf(schema: TSchema, { place, value }: RawValue): string[] {
  if (fits(schema, value))
    return (schema.problems?.(value) ?? []).map((problem: string) => `${place}: ${problem}`);
  const items = Array.isArray(value) && schema.type === 'array' ? value : null;
  const wrong = items === null ? value : items.find((item) => !fits(schema.items, item));
  if (items !== null && wrong === undefined)
    return [`${place}: expected at most ${schema.maxItems} items, found ${items.length}`];
  const found = schema.secret === true ? 'something else' : shown(wrong);
  return [`${place}: expected ${expectation(schema)}, found ${found}`];
}

function fits(schema: TSchema, value: unknown): boolean {
  if (!Value.Check(schema, value) || schema.is?.(value) === false) return false;
  return !Array.isArray(value) || value.every((item) => fits(schema.items, item));
}

/** The value of a setting. @param setting its path: `server.port` */
export const settingIn = (settings: object, setting: string) =>
  ValuePointer.Get(settings, pointerTo(setting));

const pointerTo = (setting: string): string => `/${setting.replaceAll('.', '/')}`;

/** Which exports are in use, and whatever else the settings say of them. */
export interface ExportSwitches {
  readonly exports: Readonly<Record<ExportName, { readonly enabled: boolean }>>;
}

export const enabledExports = ({ exports }: ExportSwitches): readonly ExportName[] =>
  EXPORT_NAMES.filter((name) => exports[name].enabled);

/** The drop folder, and how the names in it are parsed. */
export function dropNames(config: Pick<Settings, 'exports' | 'ingest'>) {
  return { root: config.ingest.drop, parse: nameParser(exportShapes(config).file_names) };
}

/** Which files are held until an operator resets or accepts their window. */
export function holdRules(settings: ExportSwitches & Pick<Settings, 'ingest'>): HoldRules {
  return { failed_windows: settings.ingest.failed_windows, enabled_exports: enabledExports(settings) };
}
