/** `wirewatch restore`: puts a backup in place, or tries whether that could be done. */
import type { Command } from 'commander';
import { type Rehearsed, rehearse } from '../backup/rehearse.ts';
import { type Restored, restore } from '../backup/restore.ts';
import { Refused } from '../refused.ts';
import { formatMs } from '../time.ts';
import { beGentle } from './backup.ts';
import { configOf, installationOptions } from './config.ts';
import { addDropOption, addExamples, commonOptions, instantValue } from './options.ts';
import { counted, print, progressOfSteps } from './output.ts';

const FILES_SHOWN_MAX = 10;

interface Options {
  readonly replace?: boolean;
  readonly until?: number;
  readonly rehearse?: boolean;
}

export function register(command: Command): void {
  command
    .argument('<src>', 'the backup: a folder (of its branches the newest, or the one named) or a file')
    .option('--replace', 'move what the data folder holds aside, and put the backup in its place')
    .option(
      '--until <time>',
      'restore the state of this time: what was ingested later is given up',
      instantValue,
    )
    .option('--rehearse', 'restore into a temporary folder, compare, and change nothing')
    .action(async (source: string, options: Options, self: Command) => {
      if (options.rehearse === true && (options.replace === true || options.until !== undefined))
        throw new Refused('usage', '--rehearse changes nothing: it goes with neither --replace nor --until');
      const { json } = commonOptions(self);
      const config = configOf(self);
      const steps = progressOfSteps();
      const common = {
        source,
        data: config.dataFolder,
        drop: config.ingest.drop,
        now: Date.now,
        onProgress: steps.update,
      };
      try {
        if (options.rehearse === true) {
          beGentle();
          const rehearsed = await rehearse(common);
          steps.end();
          print(rehearsed, { json, text: () => rehearsedText(rehearsed) });
          if (rehearsed.differences.length > 0) process.exitCode = 1;
          return;
        }
        const untilMs = options.until ?? null;
        const outcome = await restore({ ...common, replace: options.replace === true, untilMs });
        steps.end();
        const { dataFolder } = config;
        if (outcome.kind === 'completed') {
          const { replaced } = outcome;
          print(
            { completed_earlier_restore: true, data: dataFolder, replaced },
            {
              json,
              text: `An earlier restore into ${dataFolder} had been interrupted. It is complete now, and nothing else was done.${replacedText(replaced)}\n\nTo restore ${source} instead, run the command again with --replace.`,
            },
          );
          return;
        }
        const { restored } = outcome;
        print(
          { completed_earlier_restore: false, data: dataFolder, ...restored },
          { json, text: () => textOf(dataFolder, restored, untilMs, installationOptions(self, config)) },
        );
      } finally {
        steps.end();
      }
    });
  addDropOption(command);
  addExamples(command, [
    'restore /backups/wirewatch',
    'restore /backups/wirewatch --replace --data /var/lib/wirewatch',
    'restore monday.tar --replace --until 2026-11-21T10:00:00Z',
    'restore --rehearse /backups/wirewatch',
  ]);
}

/** @param options what `serve` needs to find the same installation */
function textOf(data: string, restored: Restored, untilMs: number | null, options: string): string {
  const { source, state_of, detections, accounts, keys, replaced, log, orphans } = restored;
  const state = state_of === null ? 'an installation without detections' : `the state of ${state_of}`;
  const from =
    log === 'continued'
      ? `${source}, continued by the log that was in the data folder`
      : `${source}. The data folder had no log that continues it`;
  return [
    `Restored ${state} into ${data}: ${counted(detections, 'detection')}, ${counted(accounts, 'account')}, ${counted(keys, 'key')}.${replacedText(replaced)}`,
    `It was made from ${from}.`,
    restored.raised
      ? raisedText(untilMs)
      : 'Nothing was lost. Clients notice nothing: positions, versions and cursors are the same.',
    ...(orphans.length === 0 ? [] : [orphansText(orphans, untilMs)]),
    `Start the appliance with: wirewatch serve${options}`,
  ].join('\n\n');
}

function raisedText(untilMs: number | null): string {
  const why =
    untilMs === null
      ? 'What came after the end of the backup may have been seen by clients, and is lost.'
      : `What was ingested after ${formatMs(untilMs)} is given up, and clients may have seen it.`;
  return `${why} So versions are raised by 1,000, once, and positions go on a year ahead: clients never take newer content for older, their cursors stay valid, and they skip nothing. They may receive detections again that they have.`;
}

function orphansText(orphans: readonly string[], untilMs: number | null): string {
  const files = orphans.slice(0, FILES_SHOWN_MAX).map((name) => `  ${name}`);
  const more = orphans.length - files.length;
  const count = orphans.length === 1 ? '1 file' : `${shown(orphans.length)} files`;
  return [
    untilMs === null
      ? `${count} in the archive came after the end of the backup. The next start reads them again:`
      : `${count} in the archive came later. They are not read again; to have one read, move it into the drop folder:`,
    ...files,
    ...(more > 0 ? [`  and ${shown(more)} more`] : []),
  ].join('\n');
}

function rehearsedText({ source, state_of, seconds, detections, compared, differences }: Rehearsed): string {
  const result =
    compared === null
      ? 'There is no installation here to compare it with.'
      : differences.length === 0
        ? `All ${shown(compared)} rows of its change stream are the same in the installation here.`
        : ['It differs from the installation here:', ...differences.map((one) => `  ${one}`)].join('\n');
  return `${source} can be restored: the state of ${state_of ?? 'an empty log'}, ${shown(detections)} detections. It took ${seconds} seconds, and nothing was changed.\n\n${result}`;
}

function replacedText(aside: string | null): string {
  return aside === null ? '' : `\nWhat was there before is in ${aside}. Delete it when all is well.`;
}

function shown(count: number): string {
  return count.toLocaleString('en-US');
}
