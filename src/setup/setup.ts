/** Writes the configuration and the systemd unit where they are missing, and names the commands that remain. */
import { existsSync, mkdirSync } from 'node:fs';
import { devNull } from 'node:os';
import path from 'node:path';
import { annotatedConfig } from '../config/annotated.ts';
import { type Config, loadConfig, settingIn } from '../config/load.ts';
import { FLAGS, type SettingFlags } from '../config/schema.ts';
import { placeFolder } from '../copy/place.ts';
import { failed, reasonOf } from '../refused.ts';
import { createOnce } from '../store/folder.ts';
import { requireOwner } from '../store/owner.ts';
import { pasted } from './shell.ts';
import { isInHome, type UnitTerms, unitText } from './unit.ts';

export interface SetupChoices {
  readonly data: string;
  readonly config: string;
  /** Settings for a new configuration. */
  readonly flags: SettingFlags;
  /** `unit`: where it is. Null: only the configuration. */
  readonly service: (Pick<UnitTerms, 'program' | 'user'> & { readonly unit: string }) | null;
}

/**
 * @returns what `--json` prints; `next`: lines for a shell, comments begin with #
 * @throws Refused for choices that cannot work, with nothing written, and if a file cannot be read or written
 */
export function setUp({ data, config, flags, service }: SetupChoices) {
  if (service === null) requireOwner({ root: data });
  const wanted = load(flags, devNull, data);
  const effective = existsSync(config) ? load({}, config, data) : wanted;
  // The settings that were given as flags; folders absolute.
  const given = FLAGS.filter(({ option }) => flags[option] !== undefined);
  const chosen = given.map(({ setting }) => [setting, settingIn(wanted, setting)] as const);
  const settings = annotatedConfig(new Map(chosen));
  if (service === null) {
    attempt(data, () => mkdirSync(data, { recursive: true, mode: 0o700 }));
    const start = `wirewatch serve --data ${pasted(data)} --config ${pasted(config)}`;
    const next = ['# Start Wirewatch, or restart it where it is running:', start];
    return { files: [place('configuration', config, settings)], next };
  }
  const terms = { ...service, data, config, ...reachable(data, service.program, effective) };
  const configuration = place('configuration', config, settings);
  const unit = place('unit', service.unit, unitText(terms));
  const { drop } = effective.ingest;
  const next = [
    ...(unit.outcome === 'written'
      ? startSteps(terms, drop)
      : ['# After a change to these files, restart the service:', 'systemctl daemon-reload']),
    'systemctl restart wirewatch',
    ...firstCommands(terms, drop, configuration.outcome === 'written'),
  ];
  return { files: [configuration, unit], next };
}

/** A service does not inherit the environment of the person who sets it up. */
const load = (flags: SettingFlags, file: string, dataFolder: string): Config =>
  loadConfig({ flags, env: {}, file, dataFolder });

/** What the unit must give access to. @throws Refused for what the service could not reach */
function reachable(data: string, program: UnitTerms['program'], effective: Config) {
  const { ingest, copy, log, photos, server, admin, alerts, preseed } = effective;
  const isOutside = (folder: string) => folder !== data && !folder.startsWith(`${data}${path.sep}`);
  const logs = log.file === '' ? null : path.dirname(log.file);
  const others = new Set([placeFolder(copy.to), logs].filter((folder) => folder !== null));
  const secrets = preseed.keys.flatMap((key) => ('secret_file' in key ? [key.secret_file] : []));
  const needed = [ingest.drop].filter(isOutside);
  const optional = [...others].filter((folder) => folder !== ingest.drop && isOutside(folder));
  const certificates = [server, admin].flatMap(({ tls_certificate, tls_key }) => [tls_certificate, tls_key]);
  const readable = [photos.folder, copy.credentials, ...certificates, ...secrets, ...alerts.command].filter(
    (named) => path.isAbsolute(named),
  );
  for (const named of [data, ...needed, ...optional, ...readable, ...program])
    if (/^\/(var\/)?tmp(\/|$)/.test(named))
      throw failed(
        `${named}: the service could not access it, because it has its own /tmp. Choose another path.`,
      );
  const hidden = program.find(isInHome);
  if (hidden !== undefined)
    throw failed(
      `the service could not run ${hidden}, because home folders are hidden from it. Copy the program first (install -m 755 wirewatch /usr/local/bin/wirewatch), and run setup from there or name it with --program.`,
    );
  return { needed, optional, readable, ports: [server.port, admin.port] };
}

/** Writes a file, complete or not at all, unless something has its name: then it is kept as it is. */
function place(what: 'configuration' | 'unit', file: string, text: string) {
  const isNew =
    !existsSync(file) &&
    attempt(file, () => {
      mkdirSync(path.dirname(file), { recursive: true });
      return createOnce(file, text, 0o644);
    });
  return { what, path: file, outcome: isNew ? 'written' : 'kept' } as const;
}

function attempt<Result>(file: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw failed(
      `cannot write ${file}: ${reasonOf(error, file)}. Run the command as root, or name files that this user may write with --config and --unit.`,
      { cause: error },
    );
  }
}

/** Creates the user and the folders of a new unit, and enables it: a restart follows. */
function startSteps(terms: UnitTerms, drop: string): string[] {
  const { data, user, needed, optional } = terms;
  const folders = [data, ...needed, ...optional];
  const home = `--home-dir ${pasted(data)} --no-create-home --shell /usr/sbin/nologin`;
  return [
    '# Create the user of the service, unless it exists:',
    `id -u ${user} >/dev/null 2>&1 || useradd --system --user-group ${home} ${user}`,
    '# Create the folders that are missing:',
    // Other programs write to the drop folder as members of its group, and their files stay the group's; but they can
    // only move their own files, not archive/.
    ...folders.map((folder) =>
      existsSync(folder)
        ? `# ${folder} already exists: ${user} must be able to write to it.`
        : `install -d -m ${folder === drop ? 3770 : '0700'} -o ${user} -g ${user} ${pasted(folder)}`,
    ),
    '# Start the service at every boot, and now; one that is running is restarted:',
    'systemctl daemon-reload',
    'systemctl enable wirewatch',
  ];
}

/** How commands name the installation and run as its user, for the first key and a check. */
function firstCommands({ data, config, user, program }: UnitTerms, drop: string, isNew: boolean): string[] {
  const run = `runuser -u ${user} -- ${program.map(pasted).join(' ')}`;
  return [
    '# Name the installation for the commands that follow:',
    `export WIREWATCH_DATA=${pasted(data)} WIREWATCH_CONFIG=${pasted(config)}`,
    ...(isNew
      ? [
          '# Create the first key. It is shown only once:',
          `${run} account add acme --name "Acme News"`,
          `${run} subscription add 7001 --account acme --time-zone Europe/Berlin`,
          `${run} key create --account acme --name Dashboard --scopes detections:read --subscriptions 7001`,
        ]
      : []),
    '# Check the installation:',
    `${run} check`,
    ...(drop.startsWith(`${data}/`)
      ? [
          `# Export files go into ${drop}, which only root and ${user} can enter. For another program, choose a folder outside the data folder (ingest.drop).`,
        ]
      : [
          `# Export files go into ${drop}. Give access to the user of the program that writes them:`,
          `usermod -a -G ${user} THAT_PROGRAMS_USER`,
        ]),
  ];
}
