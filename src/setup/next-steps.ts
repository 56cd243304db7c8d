/** The lines that are left to be run after setup has written its files, or has removed them. */
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

const WITHOUT_SYSTEMD =
  '# No unit was written, since systemd was not found: --service writes one all the same.';

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
    if (root === '/') return [...hint, '# Start the appliance:', `wirewatch serve --data ${pasted(data)}`];
    return [
      ...hint,
      '# Start the appliance, in the finished system:',
      `wirewatch serve --data ${pasted(data)}`,
      '# Or from here:',
      `wirewatch serve --data ${pasted(below(root, data))}`,
    ];
  }
  if (choices.root !== '/') return inImage(choices, plan);
  // Where it runs already, nothing but a restart makes a new unit or a changed setting hold.
  return isEnabled
    ? [...preparing(service, plan), ...restarting(), installationOf(choices), ...checking(service)]
    : [
        ...preparing(service, plan),
        ...starting(),
        ...firstKey(choices, service),
        ...checking(service),
        ...dropping(choices, service, plan),
      ];
}

/**
 * What is left, and where: nothing that is not a file of setup's goes.
 *
 * @param removed what was; nothing, and nothing is left to do
 * @param left the folders that setup or the appliance made, and the program
 */
export function stepsAfterUndo(
  root: string,
  removed: ReadonlySet<PlannedFile['what']>,
  left: LeftBehind,
): string[] {
  if (removed.size === 0) return [];
  const isService = removed.has('unit') || removed.has('user');
  const lines = [
    `# ${left.data}: the data folder`,
    ...(left.drop === null ? [] : [`# ${left.drop}: the drop folder`]),
    ...(left.backups === null ? [] : [`# ${left.backups}: the backups`]),
    ...(isService
      ? [
          `# ${CACHE_FOLDER}: the cache, which can be deleted at any time`,
          `# ${left.program}: the program`,
          '# the user of the service, and its group',
        ]
      : []),
  ];
  return [
    ...(removed.has('unit') && root === '/' ? ['systemctl daemon-reload'] : []),
    '# What is left; delete it by hand when nobody needs it any more:',
    ...lines,
  ];
}

/** Paths as they are in the finished system; null where a folder lies in the data folder, or is not known. */
export interface LeftBehind {
  readonly data: string;
  readonly drop: string | null;
  readonly backups: string | null;
  readonly program: string;
}

/** CacheDirectory= of the unit. */
const CACHE_FOLDER = '/var/cache/wirewatch';

function preparing({ user, isDynamic }: ServiceChoices, plan: Plan): string[] {
  const lines: string[] = [];
  if (plan.files.some(({ what }) => what === 'user'))
    lines.push('# Make the user of the service:', `systemd-sysusers ${SYSUSERS_PATH}`);
  if (isDynamic) return lines;
  const missing = plan.folders.filter((folder) => !existsSync(folder));
  if (missing.length > 0) lines.push('# Make the folders that are not there yet:');
  for (const folder of missing) {
    // Others write into the drop folder, by their group, and what they write stays the group's; but they can move away
    // only what is their own, not archive/.
    const mode = folder === plan.effective.ingest.drop ? '3770' : '0700';
    lines.push(`install -d -m ${mode} -o ${user} -g ${user} ${pasted(folder)}`);
  }
  for (const folder of plan.folders.filter((one) => !missing.includes(one)))
    lines.push(`# ${folder} is there already: ${user} must be able to write into it.`);
  return lines;
}

function starting(): string[] {
  return [
    '# Start it, now and with the system:',
    'systemctl daemon-reload',
    'systemctl enable --now wirewatch',
  ];
}

function restarting(): string[] {
  return [
    '# The service is set up already. Restart it, so that the unit and the settings of now hold:',
    'systemctl daemon-reload',
    'systemctl restart wirewatch',
  ];
}

/** How a command is run as the user of the service. */
function asUser({ isDynamic, user, program }: ServiceChoices): string {
  // A user that systemd makes is not there to be taken; SQLite gives root's files to the owner of the database.
  return `${isDynamic ? '' : `runuser -u ${user} -- `}${program.map(pasted).join(' ')}`;
}

function installationOf({ data, config }: SetupChoices): string {
  return `export WIREWATCH_DATA=${pasted(data)} WIREWATCH_CONFIG=${pasted(config)}`;
}

function firstKey(choices: SetupChoices, service: ServiceChoices): string[] {
  const run = asUser(service);
  return [
    '# The first key, which is shown only once:',
    installationOf(choices),
    `${run} account add acme --name "Acme News"`,
    `${run} subscription add 7001 --account acme --time-zone Europe/Berlin`,
    `${run} key create --account acme --name Dashboard --scopes detections:read --subscriptions 7001`,
  ];
}

function checking(service: ServiceChoices): string[] {
  return ['# Is everything in order?', `${asUser(service)} check`];
}

function dropping(
  { data }: SetupChoices,
  { user, isDynamic }: ServiceChoices,
  { effective }: Plan,
): string[] {
  const { drop } = effective.ingest;
  if (stateDirectory(data) !== null && drop.startsWith(`${data}/`))
    return [
      `# Export files go into ${drop}, where only root${isDynamic ? '' : ` and ${user}`} may write: another program needs a folder outside, --drop.`,
    ];
  return [
    `# Export files go into ${drop}. Let the program that writes them do so:`,
    `usermod -a -G ${user} THAT_PROGRAMS_USER`,
  ];
}

/** What systemd does by itself when the image is started first is left to it. */
function inImage({ root, data }: SetupChoices, { folders, files }: Plan): string[] {
  const lines = ['# In the image:', `systemctl --root=${pasted(root)} enable wirewatch`];
  if (files.some(({ what }) => what === 'user')) lines.push(`systemd-sysusers --root=${pasted(root)}`);
  const missing = folders.filter((folder) => folder !== data || stateDirectory(data) === null);
  for (const folder of missing)
    lines.push(`# ${below('/', folder)} has to be there, writable for the user of the service.`);
  return lines;
}
