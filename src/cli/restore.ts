/** `wirewatch restore`: restores a backup into the data folder. */
import { basename } from 'node:path';
import { dropNames } from '../config/load.ts';
import { type Restored, type RestoreOptions, restore } from '../copy/restore.ts';
import { openCopy } from '../copy/source.ts';
import { counted } from '../counted.ts';
import { droppedName, type NameParser } from '../exports/file-name.ts';
import { anyText, instant, required, toggle } from '../operations/member.ts';
import { dataFolder } from '../store/folder.ts';
import { requireOwner } from '../store/owner.ts';
import { joined } from '../text-layout.ts';
import { formatMs } from '../time.ts';
import { defineCommand } from './command.ts';
import { configOf, installationOptions } from './installation.ts';
import { DROP_OPTION } from './options.ts';
import { showProgress } from './output.ts';

/** Of files that are listed. */
const FILES_SHOWN_MAX = 10;

export const register = defineCommand({
  members: {
    src: required(anyText('a copy: a folder, or s3://bucket/prefix')),
    replace: toggle('move the contents of the data folder aside, and restore in their place'),
    until: instant('restore the state at this time. Everything ingested later is discarded'),
  },
  operands: ['src'],
  options: [DROP_OPTION],
  examples: [
    'restore /backups/wirewatch',
    'restore /backups/wirewatch --replace --data /var/lib/wirewatch',
    'restore s3://backups/wirewatch --replace --until 2026-11-21T10:00:00Z',
  ],
  async run({ src, replace = false, until: untilMs = null }, self) {
    const config = configOf(self);
    const { dataFolder: data, copy } = config;
    const drop = dropNames(config);
    requireOwner(dataFolder(data));
    const source = await openCopy(src, copy);
    const asked = { data, untilMs, standby: copy.standby };
    const options = { ...asked, source, replace, drop, onProgress: showProgress, now: Date.now };
    const restored = await restore(options);
    if ('earlier' in restored)
      return {
        value: { completed_earlier_restore: true, data, replaced: restored.earlier },
        text: `An earlier restore into ${data} had been interrupted. It is now complete, and nothing else was done.${replacedText(restored.earlier)}\n\nTo restore ${source.text} instead, run the command again with --replace.`,
      };
    const text = restoredText(restored, { ...asked, parse: drop.parse }, installationOptions(self, config));
    return { value: { completed_earlier_restore: false, data, ...restored }, text };
  },
});

type Asked = Pick<RestoreOptions, 'data' | 'untilMs'> & {
  readonly standby: boolean;
  readonly parse: NameParser;
};

/** @param options with which `serve` finds the same installation */
function restoredText(restored: Restored, asked: Asked, options: string): string {
  const { source, state_of, detections, accounts, keys, replaced, gone, ended_here, orphans, superseded } =
    restored;
  const { data, standby: isStandby } = asked;
  const state = state_of === null ? 'an installation without detections' : `the state of ${state_of}`;
  const since = restored.access_state_of === null ? '' : ` after ${restored.access_state_of}`;
  return joined('\n\n', [
    `Restored ${state} into ${data}: ${counted(detections, 'detection')}, ${counted(accounts, 'account')}, ${counted(keys, 'key')}.${replacedText(replaced)}`,
    `Restored from ${source}.`,
    isStandby
      ? 'This machine is a standby: it follows the copy as soon as it runs. To make it the writer, start it and run: wirewatch promote'
      : detectionsText(restored, asked),
    superseded !== null &&
      !isStandby &&
      `Another machine took over from this one (${superseded}). If it still runs, stop it before you start this one, or set [copy] standby and run the command again: two writers have different content.`,
    gone !== null &&
      `${counted(gone.count, 'detection')} that clients may have ${gone.count === 1 ? 'does' : 'do'} not exist in this state, and nothing tells clients so. Their ids are in ${gone.file}: send it to your customers, if the detections were wrong.`,
    ended_here.length > 0 &&
      `These were revoked or suspended here, and the writer does not know it. Repeat it there: ${ended_here.join(', ')}.`,
    restored.access !== 'continued' &&
      !isStandby &&
      `Changes to accounts, subscriptions and keys${since} are lost. A key that was revoked since then works again: revoke it again. A key that was created since then is gone: create it again. All console sessions have ended.`,
    orphans.length > 0 && orphansText(orphans, asked),
    `Start Wirewatch with: wirewatch serve${options}`,
  ]);
}

function detectionsText({ raised, access }: Restored, { untilMs }: Asked): string {
  if (!raised)
    return `${access === 'continued' ? 'Nothing' : 'No detection'} was lost, and clients notice nothing: positions, versions and cursors are the same.`;
  const why =
    untilMs === null
      ? 'Changes after the end of the backup are lost'
      : `Changes after ${formatMs(untilMs)} are discarded`;
  return `${why}, and clients may have seen them. Therefore versions are raised by 1,000, once, and positions continue a year ahead: clients never mistake newer content for older, their cursors stay valid, and they skip nothing. What they have in a version that is gone is announced again; where that is not known, what changed in the last 31 days of the log.`;
}

function orphansText(orphans: readonly string[], { untilMs, standby, parse }: Asked): string {
  const them = orphans.length === 1 ? 'it' : 'them';
  const onWriter =
    untilMs === null
      ? `newer than the backup. The next start reads ${them} again:`
      : 'newer than that time, and will not be read again. To read a file again, move it into the drop folder:';
  const next = standby ? `not in the copy. Drop ${them} again on the writer:` : onWriter;
  const shown = orphans.slice(0, FILES_SHOWN_MAX).map((path) => {
    const name = basename(path);
    const dropped = droppedName(name, parse) ?? name;
    // Under another name it would be refused.
    return `  ${path}${dropped === name ? '' : ` (as ${dropped})`}`;
  });
  return joined('\n', [
    `${counted(orphans.length, 'file in the archive is', 'files in the archive are')} ${next}`,
    ...shown,
    orphans.length > FILES_SHOWN_MAX && '  ... (--json lists all)',
  ]);
}

const replacedText = (aside: string | null): string =>
  aside === null ? '' : `\nThe previous contents are in ${aside}. Delete them when everything works.`;
