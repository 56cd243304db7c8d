/** The commands to run after setup has written its files, or has removed them. */
import { existsSync } from 'node:fs';
import {
  below,
  type Plan,
  type PlannedFile,
  type ServiceChoices,
  type SetupChoices,
  SYSUSERS_PATH,
} from './plan.ts';
import { pasted } from './shell.ts';
import { stateDirectory } from './unit.ts';

const WITHOUT_SYSTEMD = '# No unit was written, because systemd was not found. --service writes one anyway.';

/**
 * Lines for a shell, run as root where a service was set up.
 *
 * @param isEnabled whether the service was enabled before
 */
export function nextSteps(choices: SetupChoices, plan: Plan, isEnabled: boolean): string[] {
  const { service } = choices;
  if (service === null) {
    const hint = choices.isSystemdMissing ? [WITHOUT_SYSTEMD] : [];
    const { root, data } = choices;
    if (root === '/') return [...hint, '# Start Wirewatch:', `wirewatch serve --data ${pasted(data)}`];
    return [
      ...hint,
      '# Start Wirewatch in the finished system:',
      `wirewatch serve --data ${pasted(data)}`,
      '# Or from here:',
      `wirewatch serve --data ${pasted(below(root, data))}`,
    ];
  }
  if (choices.root !== '/') return inImage(choices, plan);
  // If it is already running, only a restart applies a new unit or a changed setting.
  return isEnabled
    ? [...preparing(service, plan), ...RESTARTING, installationOf(choices), ...checking(choices, service)]
    : [
        ...preparing(service, plan),
        ...STARTING,
        ...firstKey(choices, service),
        ...checking(choices, service),
        ...dropping(choices, service, plan),
      ];
}

/**
 * What remains, and where: setup removes only its own files.
 *
 * @param removed the files that were removed; if none, there is nothing to do
 * @param folders that setup or the appliance created, each with what it is
 */
export function stepsAfterUndo(
  { root, program }: { readonly root: string; readonly program: string },
  removed: ReadonlySet<PlannedFile['what']>,
  folders: readonly string[],
): string[] {
  if (removed.size === 0) return [];
  const left = [...folders];
  if (removed.has('unit') || removed.has('user'))
    left.push(
      `${CACHE_FOLDER}: the cache, which can be deleted at any time`,
      `${program}: the program`,
      'the user of the service, and its group',
    );
  return [
    ...(removed.has('unit') && root === '/' ? ['systemctl daemon-reload'] : []),
    '# These remain. Delete them by hand when you no longer need them:',
    ...left.map((one) => `# ${one}`),
  ];
}

/** CacheDirectory= of the unit. */
const CACHE_FOLDER = '/var/cache/wirewatch';

function preparing({ user, isDynamic }: ServiceChoices, plan: Plan): string[] {
  const lines: string[] = [];
  if (plan.files.some(({ what }) => what === 'user'))
    lines.push('# Create the user of the service:', `systemd-sysusers ${SYSUSERS_PATH}`);
  if (isDynamic) return lines;
  const missing = plan.folders.filter((folder) => !existsSync(folder));
  if (missing.length > 0) lines.push('# Create the missing folders:');
  for (const folder of missing) {
    // Other programs write to the drop folder as members of its group, and their files stay the group's; but they can
    // only move their own files, not archive/.
    const mode = folder === plan.effective.ingest.drop ? '3770' : '0700';
    lines.push(`install -d -m ${mode} -o ${user} -g ${user} ${pasted(folder)}`);
  }
  for (const folder of plan.folders.filter((one) => !missing.includes(one)))
    lines.push(`# ${folder} already exists: ${user} must be able to write to it.`);
  return lines;
}

const STARTING = [
  '# Start the service now and at every boot:',
  'systemctl daemon-reload',
  'systemctl enable --now wirewatch',
];

const RESTARTING = [
  '# The service is already set up. Restart it to apply the unit and the settings:',
  'systemctl daemon-reload',
  'systemctl restart wirewatch',
];

/** How a command is run as the user of the service. */
function asUser({ isDynamic, user, program }: ServiceChoices, data: string): string {
  // A dynamic user exists only in units, which share it by its name; no other process can enter its folder but root's.
  const shared = `-p DynamicUser=yes -p User=${user} -p StateDirectory=${stateDirectory(data)} -p CacheDirectory=wirewatch`;
  const settings = `-E WIREWATCH_DATA -E WIREWATCH_CONFIG -E WIREWATCH_ADDON_DIR=${CACHE_FOLDER}/addon`;
  const unit = `systemd-run --quiet --collect --wait --pipe ${shared} ${settings}`;
  return `${isDynamic ? unit : `runuser -u ${user} --`} ${program.map(pasted).join(' ')}`;
}

function installationOf({ data, config }: SetupChoices): string {
  return `export WIREWATCH_DATA=${pasted(data)} WIREWATCH_CONFIG=${pasted(config)}`;
}

function firstKey(choices: SetupChoices, service: ServiceChoices): string[] {
  const run = asUser(service, choices.data);
  return [
    '# Create the first key. It is shown only once:',
    installationOf(choices),
    `${run} account add acme --name "Acme News"`,
    `${run} subscription add 7001 --account acme --time-zone Europe/Berlin`,
    `${run} key create --account acme --name Dashboard --scopes detections:read --subscriptions 7001`,
  ];
}

function checking({ data }: SetupChoices, service: ServiceChoices): string[] {
  return ['# Check the installation:', `${asUser(service, data)} check`];
}

function dropping(
  { data }: SetupChoices,
  { user, isDynamic }: ServiceChoices,
  { effective }: Plan,
): string[] {
  const { drop } = effective.ingest;
  if (stateDirectory(data) !== null && drop.startsWith(`${data}/`)) {
    const who = isDynamic ? 'root' : `root and ${user}`;
    const otherwise = isDynamic
      ? 'run setup without --dynamic-user, and with --drop'
      : 'choose a folder outside the data folder with --drop';
    return [
      `# Drop export files into ${drop}. Only ${who} can write there: for another program, ${otherwise}.`,
    ];
  }
  return [
    `# Drop export files into ${drop}. Give access to the user of the program that writes them:`,
    `usermod -a -G ${user} THAT_PROGRAMS_USER`,
  ];
}

/** Leaves to systemd what it does by itself when the image first starts. */
function inImage({ root, data }: SetupChoices, { folders, files }: Plan): string[] {
  const lines = ['# In the image:', `systemctl --root=${pasted(root)} enable wirewatch`];
  if (files.some(({ what }) => what === 'user')) lines.push(`systemd-sysusers --root=${pasted(root)}`);
  const missing = folders.filter((folder) => folder !== data || stateDirectory(data) === null);
  for (const folder of missing)
    lines.push(`# ${below('/', folder)} must exist and be writable for the user of the service.`);
  return lines;
}
