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

/** Lines for a shell, run as root where a service was set up. */
export function nextSteps(choices: SetupChoices, plan: Plan): string[] {
  const { service } = choices;
  if (service === null) {
    const hint = choices.isSystemdMissing ? [WITHOUT_SYSTEMD] : [];
    return [...hint, '# Start the appliance:', `wirewatch serve --data ${pasted(choices.data)}`];
  }
  return choices.root === '/'
    ? [
        ...preparing(service, plan),
        ...starting(),
        ...firstKey(choices, service),
        ...dropping(choices, service, plan),
      ]
    : inImage(choices, plan);
}

/** @param removed what was; nothing, and nothing is left to do */
export function stepsAfterUndo(
  { root, data }: Pick<SetupChoices, 'root' | 'data'>,
  removed: ReadonlySet<PlannedFile['what']>,
): string[] {
  if (removed.size === 0) return [];
  const isService = removed.has('unit') || removed.has('user');
  const kept = isService
    ? '# The data folder is left as it is, and so is the user of the service.'
    : `# ${data} is left as it is.`;
  return [...(removed.has('unit') && root === '/' ? ['systemctl daemon-reload'] : []), kept];
}

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

function firstKey({ data, config }: SetupChoices, service: ServiceChoices): string[] {
  // A user that systemd makes is not there to be taken; SQLite gives root's files to the owner of the database.
  const run = `${service.isDynamic ? '' : `runuser -u ${service.user} -- `}${service.program.map(pasted).join(' ')}`;
  return [
    '# The first key, which is shown this one time:',
    `export WIREWATCH_DATA=${pasted(data)} WIREWATCH_CONFIG=${pasted(config)}`,
    `${run} account add acme --name "Acme News"`,
    `${run} subscription add 7001 --account acme --time-zone Europe/Berlin`,
    `${run} key create --account acme --name Dashboard --scopes detections:read --subscriptions 7001`,
    '# Is everything in order?',
    `${run} check`,
  ];
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
