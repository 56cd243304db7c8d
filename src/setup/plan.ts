/** The files that setup writes for the operator's choices, their contents, and the folders that must exist. */
import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { devNull } from 'node:os';
import path from 'node:path';
import { annotatedConfig } from '../config/annotated.ts';
import { type Config, loadConfig } from '../config/load.ts';
import { FLAGS, type SettingFlags } from '../config/schema.ts';
import { Refused } from '../refused.ts';
import { isInHome, isTemporary, stateDirectory, sysusersText, unitText } from './unit.ts';

export interface SetupChoices {
  /** All files are read and written below it; `/` for this system. */
  readonly root: string;
  readonly data: string;
  readonly config: string;
  readonly flags: SettingFlags;
  /** Null: only the configuration. */
  readonly service: ServiceChoices | null;
  /** Whether that is because systemd was not found. */
  readonly isSystemdMissing: boolean;
}

export interface ServiceChoices {
  readonly user: string;
  readonly isDynamic: boolean;
  /** The program and its arguments before the name of the command, absolute. */
  readonly program: readonly string[];
  /** Whether it was named, and is not this program. */
  readonly isProgramNamed: boolean;
}

export interface PlannedFile {
  readonly what: 'configuration' | 'unit' | 'user';
  /** As it is in the finished system. */
  readonly path: string;
  readonly text: string;
}

export interface Plan {
  readonly files: readonly PlannedFile[];
  /** Choices that an existing configuration overrides. */
  readonly notApplied: readonly string[];
  /** Folders that must exist, apart from a data folder that systemd or the first start creates. */
  readonly folders: readonly string[];
  readonly effective: Config;
}

export const SERVICE_CONFIG = '/etc/wirewatch/wirewatch.toml';
export const UNIT_PATH = '/etc/systemd/system/wirewatch.service';
export const ENABLED_PATH = '/etc/systemd/system/multi-user.target.wants/wirewatch.service';
export const SYSUSERS_PATH = '/etc/sysusers.d/wirewatch.conf';
const NOTIFY_PATHS = ['/usr/bin/systemd-notify', '/bin/systemd-notify'];

/** The present place of a path of the finished system. */
export function below(root: string, file: string): string {
  return path.join(root, file);
}

/** Whether systemd runs this system (sd_booted(3)), or is installed in the other one. */
export function isSystemdThere(root: string): boolean {
  const paths = root === '/' ? ['/run/systemd/system'] : ['/usr/lib/systemd/systemd', '/lib/systemd/systemd'];
  return paths.some((one) => existsSync(below(root, one)));
}

/** It comes with systemd; below a root without systemd, as for a package, it will be there. */
function canNotify(root: string): boolean {
  return !isSystemdThere(root) || NOTIFY_PATHS.some((one) => existsSync(below(root, one)));
}

/** @throws Refused for choices that are invalid or contradict each other, or a configuration that does not load */
export function planSetup(choices: SetupChoices): Plan {
  const { root, data, config: configPath, flags, service } = choices;
  const existing = below(root, configPath);
  const wanted = load(flags, devNull, data);
  const effective = existsSync(existing) ? load({}, existing, data) : wanted;
  const chosen = chosenValues(flags, wanted);
  const configuration = { what: 'configuration', path: configPath, text: annotatedConfig(chosen) } as const;
  const notApplied = overridden(flags, wanted, effective);
  if (service === null) return { files: [configuration], notApplied, folders: [], effective };
  const { needed, optional } = writableFolders(effective, data);
  const folders = [...needed, ...optional];
  const readable = readPaths(effective);
  checkChoices(choices, service, folders, readable);
  requireProgram(root, service);
  const unit = unitText({
    ...service,
    data,
    config: configPath,
    needed,
    optional,
    readable,
    ports: [effective.server.port, effective.admin.port],
    canNotify: canNotify(root),
  });
  const files: PlannedFile[] = [configuration, { what: 'unit', path: UNIT_PATH, text: unit }];
  if (!service.isDynamic && needsUser(root, service.user))
    files.push({ what: 'user', path: SYSUSERS_PATH, text: sysusersText(service.user, data) });
  const made = stateDirectory(data) === null ? [data, ...folders] : folders;
  return { files, notApplied, folders: made, effective };
}

/** A service does not inherit the environment of the person who sets it up. */
function load(flags: SettingFlags, file: string, dataFolder: string): Config {
  return loadConfig({ flags, env: {}, file, dataFolder });
}

/** The values of the flags, for the configuration; folders absolute, since the file is in another folder. */
function chosenValues(flags: SettingFlags, wanted: Config): Map<string, string | number> {
  const chosen = FLAGS.filter(({ option }) => flags[option] !== undefined);
  return new Map(chosen.map(({ setting }) => [setting, flagged(wanted)[setting]]));
}

function flagged({ server, ingest }: Config) {
  return {
    'ingest.drop': ingest.drop,
    'server.host': server.host,
    'server.port': server.port,
    'server.base_url': server.base_url,
  };
}

function overridden(flags: SettingFlags, wanted: Config, effective: Config): string[] {
  const [asked, existing] = [flagged(wanted), flagged(effective)];
  return FLAGS.filter(
    ({ option, setting }) => flags[option] !== undefined && asked[setting] !== existing[setting],
  ).map(
    ({ flag, setting }) =>
      `${flag} ${JSON.stringify(asked[setting])}: the existing configuration has ${JSON.stringify(existing[setting])}; change ${setting} there`,
  );
}

/** Folders outside the data folder that the appliance writes to: those it needs to start, and the others. */
function writableFolders(
  { ingest, backup, log }: Config,
  data: string,
): { needed: string[]; optional: string[] } {
  const logs = log.file === '' ? [] : [path.dirname(log.file)];
  const others = new Set([backup.folder, ...logs]);
  return {
    needed: isWithin(ingest.drop, data) ? [] : [ingest.drop],
    optional: [...others].filter((folder) => folder !== ingest.drop && !isWithin(folder, data)),
  };
}

/** Files and folders of the configuration that the appliance only reads. */
function readPaths({ photos, server, preseed }: Config): string[] {
  const secrets = preseed.keys.flatMap(({ source }) => (source.kind === 'secret_file' ? [source.file] : []));
  return [photos.folder, server.tls_certificate, server.tls_key, ...secrets].filter((one) => one !== '');
}

function checkChoices(
  { data, config }: SetupChoices,
  service: ServiceChoices,
  folders: readonly string[],
  readable: readonly string[],
): void {
  const named = [data, config, ...folders, ...readable, ...service.program];
  for (const one of named) {
    if (/[\u0000-\u001f\u007f]/.test(one))
      throw new Refused(
        'usage',
        `${JSON.stringify(one)}: a systemd unit cannot contain a path with control characters`,
      );
    if (isTemporary(one))
      throw new Refused(
        'failed',
        `${one}: the service could not access it, because it has its own /tmp. Choose another path.`,
      );
  }
  const [program = ''] = service.program.filter((one) => isInHome(one));
  if (program !== '') {
    throw new Refused(
      'failed',
      `the service could not run ${program}, because home folders are hidden from it. Copy the program first (install -m 755 wirewatch /usr/local/bin/wirewatch), and run setup from there or name it with --program.`,
    );
  }
  const outside = [...(stateDirectory(data) === null ? [data] : []), ...folders];
  if (service.isDynamic && outside.length > 0) {
    throw new Refused(
      'usage',
      `--dynamic-user: this user exists only while the service runs, and cannot own folders outside /var/lib: ${outside.join(', ')}. Leave out the option, or use --data /var/lib/NAME with the drop folder inside it.`,
    );
  }
}

/** A unit cannot start a program that does not exist. */
function requireProgram(root: string, { isProgramNamed, program: [program = ''] }: ServiceChoices): void {
  const file = below(root, program);
  // The target of a link is not checked: below a root, it is another place.
  if (!isProgramNamed || lstatSync(file, { throwIfNoEntry: false }) !== undefined) return;
  throw new Refused(
    'failed',
    `--program: ${file} does not exist. Copy the program first (install -D -m 755 wirewatch ${file}), or name another one.`,
  );
}

/** Whether the user must be created; an existing one is used as it is. */
function needsUser(root: string, user: string): boolean {
  if (existsSync(below(root, SYSUSERS_PATH))) return true;
  const users = below(root, '/etc/passwd');
  return !existsSync(users) || !new RegExp(`^${user}:`, 'm').test(readFileSync(users, 'utf8'));
}

function isWithin(folder: string, other: string): boolean {
  return folder === other || folder.startsWith(`${other}${path.sep}`);
}
