/** The commands that the operator runs after `wirewatch setup`, as root. */
import { existsSync } from 'node:fs';
import { pasted } from './shell.ts';
import { stateDirectory, type UnitTerms } from './unit.ts';

/** Lines for a shell that create the user and the folders of a new unit, and start it; comments begin with #. */
export function startSteps(terms: UnitTerms, drop: string): string[] {
  const { data, user, needed, optional } = terms;
  const folders = [...(stateDirectory(data) === null ? [data] : []), ...needed, ...optional];
  const missing = folders.filter((folder) => !existsSync(folder));
  const home = `--home-dir ${pasted(data)} --no-create-home --shell /usr/sbin/nologin`;
  return [
    '# Create the user of the service, unless it exists:',
    `id -u ${user} >/dev/null 2>&1 || useradd --system --user-group ${home} ${user}`,
    ...(missing.length > 0 ? ['# Create the missing folders:'] : []),
    // Other programs write to the drop folder as members of its group, and their files stay the group's; but they can
    // only move their own files, not archive/.
    ...missing.map(
      (folder) => `install -d -m ${folder === drop ? 3770 : '0700'} -o ${user} -g ${user} ${pasted(folder)}`,
    ),
    ...folders
      .filter((folder) => !missing.includes(folder))
      .map((folder) => `# ${folder} already exists: ${user} must be able to write to it.`),
    '# Start the service at every boot, and now; one that is running is restarted:',
    'systemctl daemon-reload',
    'systemctl enable wirewatch',
    'systemctl restart wirewatch',
  ];
}

/** @param other a unit that is not the one that setup would write */
export function restartSteps(other: string | null): string[] {
  return [
    '# After a change to these files, restart the service. "wirewatch status" says whether it still has other settings:',
    'systemctl daemon-reload',
    'systemctl restart wirewatch',
    ...(other === null
      ? []
      : [`# To have the unit that setup would write: rm ${pasted(other)}, then run setup again.`]),
  ];
}

/** How commands name the installation and run as its user, for the first key and a check. */
export function firstCommands(
  { data, config, user, program }: UnitTerms,
  drop: string,
  isNew: boolean,
): string[] {
  const run = `runuser -u ${user} -- ${program.map(pasted).join(' ')}`;
  const key = [
    '# Create the first key. It is shown only once:',
    `${run} account add acme --name "Acme News"`,
    `${run} subscription add 7001 --account acme --time-zone Europe/Berlin`,
    `${run} key create --account acme --name Dashboard --scopes detections:read --subscriptions 7001`,
  ];
  return [
    '# Name the installation for the commands that follow:',
    `export WIREWATCH_DATA=${pasted(data)} WIREWATCH_CONFIG=${pasted(config)}`,
    ...(isNew ? key : []),
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
