/**
 * The effective settings: flag, then environment, then configuration file, then default.
 *
 * Every value is checked, even if another one overrides it, and all problems are reported at once: an operator who
 * fixes one line should not learn of the next problem at the next start.
 */
import path from 'node:path';
import type { TSchema } from '@sinclair/typebox';
import { Value, ValuePointer } from '@sinclair/typebox/value';
import { EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import { nameParser } from '../exports/file-name.ts';
import { didYouMean } from '../nearest.ts';
import { listed, misconfigured } from '../refused.ts';
import { exportShapes } from './export-settings.ts';
import { readConfigFile, tableOfText } from './file.ts';
import { isTable, plainValue, type RawValue, shown } from './option-values.ts';
import { PRESEED_TABLES, type Preseed, readPreseed } from './preseed.ts';
import { type ResolvedSettings, resolve } from './resolve.ts';
import {
  expectation,
  FLAGS,
  SETTINGS,
  SETTINGS_SCHEMA,
  type Setting,
  type SettingFlags,
  type Settings,
} from './schema.ts';

export type ConfigSources = {
  flags: SettingFlags;
  env: Readonly<Record<string, string | undefined>>;
  /** `--config`; overrides the variable WIREWATCH_CONFIG */
  file: string | undefined;
  dataFolder: string;
};

export type Config = ResolvedSettings & {
  dataFolder: string;
  /** absolute; null if there is none */
  configFile: string | null;
  /** What it was loaded with besides the environment, to load it again. */
  given: Pick<ConfigSources, 'flags' | 'file'>;
  /** What a start creates if it is missing. */
  preseed: Preseed;
};

/** Other variables that begin with WIREWATCH_ are ignored: Kubernetes adds some for each service, named after it. */
const STRICT_VARIABLE = new RegExp(
  `^WIREWATCH_(${Object.keys(SETTINGS_SCHEMA.properties).join('|').toUpperCase()})_`,
);

/** @throws Refused `configuration` with every problem: its place, what was expected, what was found */
export function loadConfig({ flags, env, file, dataFolder }: ConfigSources): Config {
  const configFile = readConfigFile(file || env.WIREWATCH_CONFIG, dataFolder);
  const problems = [...configFile.problems];
  const { sections, tables } = divided(configFile.table);
  const fromFile = valuesOf(configFile.file ?? '', sections, problems);
  problems.push(...unknownVariables(env));

  const settings = {};
  const raw = new Map<string, RawValue>();
  for (const setting of SETTINGS) {
    const flag = FLAGS.find((known) => known.setting === setting.path);
    const texts = [
      [flag?.flag ?? '', flag && flags[flag.option]],
      [setting.variable, env[setting.variable]],
    ] as const;
    const present = [
      ...texts.flatMap(([place, text]) =>
        text === undefined
          ? []
          : [{ place, value: valueOfText(text, setting.schema), folder: process.cwd() }],
      ),
      ...[fromFile.get(setting.path)].filter((value) => value !== undefined),
    ];
    for (const value of present) problems.push(...problemsOf(setting, value));
    const [effective] = present;
    if (effective !== undefined) raw.set(setting.path, effective);
    const value = effective === undefined ? setting.schema.default : effective.value;
    ValuePointer.Set(settings, `/${setting.path.replaceAll('.', '/')}`, structuredClone(value));
  }
  const prefix = String(ValuePointer.Get(settings, '/keys/prefix'));
  const preseed = readPreseed({ file: configFile.file ?? '', tables, prefix }, problems);
  if (problems.length > 0) throw misconfigured(listed(problems, 'settings are invalid'));
  if (!Value.Check(SETTINGS_SCHEMA, settings)) throw new Error('the settings do not match their schema');
  return {
    ...resolve(settings, raw, dataFolder),
    dataFolder,
    configFile: configFile.file,
    given: { flags: Object.fromEntries(FLAGS.map(({ option }) => [option, flags[option]])), file },
    preseed,
  };
}

/** Separates the settings from what a start creates. `keys` can be either: TOML allows only one of the two in a file. */
function divided(table: object): { sections: object; tables: Readonly<Record<string, unknown>> } {
  const isPreseed = ([name, value]: [string, unknown]) =>
    PRESEED_TABLES.some((table) => table === name) && !(name === 'keys' && isTable(value));
  const entries = Object.entries(table);
  return {
    sections: Object.fromEntries(entries.filter((entry) => !isPreseed(entry))),
    tables: Object.fromEntries(entries.filter(isPreseed)),
  };
}

const NAMES = [...SETTINGS.flatMap(({ section, path }) => [path, section]), ...PRESEED_TABLES];

/** The values of the file, by the path of their setting; anything unknown becomes a problem. */
function valuesOf(file: string, sections: object, problems: string[]): Map<string, RawValue> {
  const values = new Map<string, RawValue>();
  for (const { section, name, value } of leavesOf(sections, '')) {
    const at = joined(section, name);
    const place = `${file}, ${section === '' ? name : `[${section}] ${name}`}`;
    if (SETTINGS.some((setting) => setting.path === at))
      values.set(at, { place, value: plainValue(value), folder: path.dirname(file) });
    else if (isSection(at)) problems.push(`${place}: expected a section [${at}], found ${shown(value)}`);
    else {
      // In another section, perhaps.
      const elsewhere = SETTINGS.find((setting) => setting.name === name)?.path;
      problems.push(`${place}: unknown setting${didYouMean(elsewhere ?? at, NAMES)}`);
    }
  }
  return values;
}

type Leaf = { section: string; name: string; value: unknown };

/** Every member of a table that is not itself a known section. */
function leavesOf(table: object, section: string): Leaf[] {
  return Object.entries(table).flatMap(([name, value]) => {
    const at = joined(section, name);
    return isTable(value) && isSection(at) ? leavesOf(value, at) : [{ section, name, value }];
  });
}

function isSection(at: string): boolean {
  return SETTINGS.some(({ section }) => section === at || section.startsWith(`${at}.`));
}

function joined(section: string, name: string): string {
  return section === '' ? name : `${section}.${name}`;
}

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

function problemsOf(setting: Setting, { place, value }: RawValue): string[] {
  const { schema } = setting;
  if (fits(schema, value))
    return typeof schema.problems !== 'function'
      ? []
      : schema.problems(value).map((problem: string) => `${place}: ${problem}`);
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

/** Which exports are in use, and whatever else the settings say of them. */
export interface ExportSwitches {
  readonly exports: Readonly<Record<ExportName, { readonly enabled: boolean }>>;
}

export function enabledExports({ exports }: ExportSwitches): ReadonlySet<ExportName> {
  return new Set(EXPORT_NAMES.filter((name) => exports[name].enabled));
}

/** The drop folder, and how the names in it are parsed. */
export function dropNames(config: Pick<Settings, 'exports' | 'ingest'>) {
  return { root: config.ingest.drop, parse: nameParser(exportShapes(config).file_names) };
}

/** Which files are held until an operator resets or accepts their window. */
export function holdRules(settings: ExportSwitches & Pick<Settings, 'ingest'>) {
  const { failed_windows } = settings.ingest;
  return { failed_windows, enabled_exports: [...enabledExports(settings)] };
}
