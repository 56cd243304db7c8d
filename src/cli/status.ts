/** `wirewatch status`: the current state on one screen. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { type Status as Overview, readOverview } from '../admin/overview.ts';
import { enabledExports } from '../config/load.ts';
import { printable } from '../printable.ts';
import { Refused } from '../refused.ts';
import { createFileReader } from '../store/file-reader.ts';
import { readNoted } from '../store/noted-address.ts';
import { SECOND_MS } from '../time.ts';
import { openForCommand } from './access.ts';
import { configOf, folderOf, requireInstallation } from './config.ts';
import { listeningUrl } from './local-address.ts';
import { addDropOption, addExamples, commonOptions } from './options.ts';
import { print, terminalWidth } from './output.ts';
import { statusText } from './status-text.ts';

const WIDTH_OF_PIPE = 100;
const WATCH_EVERY_MS = 2 * SECOND_MS;

/** What the console shows first, and where Wirewatch listens. */
export interface Status extends Overview {
  /** Where it would listen, if it does not run; null where that is not known. */
  readonly url: string | null;
}

export function register(command: Command): void {
  command
    .option('--watch', 'refresh the screen until you press Ctrl-C')
    .action(async ({ watch }: { watch?: boolean }, self: Command) => {
      const { json } = commonOptions(self);
      if (watch === true) {
        await watched(self, json);
        return;
      }
      const status = await statusOf(self);
      print(status, { json, text: () => statusText(status, Date.now(), terminalWidth() ?? WIDTH_OF_PIPE) });
    });
  addDropOption(command);
  addExamples(command, ['status', 'status --watch', 'status --json']);
}

async function watched(command: Command, json: boolean): Promise<never> {
  if (json || process.stdout.isTTY !== true)
    throw new Refused(
      'usage',
      '--watch needs a terminal, and cannot be combined with --json. Leave out --watch to print the status once.',
    );
  for (;;) {
    const text = printable(statusText(await statusOf(command), Date.now(), terminalWidth() ?? WIDTH_OF_PIPE));
    // Drawn over the last one, from the top of the screen; the rest of each line and of the screen is cleared.
    process.stdout.write(`\x1b[H${text.replaceAll('\n', '\x1b[K\n')}\x1b[J`);
    await sleep(WATCH_EVERY_MS);
  }
}

/** @throws Refused `configuration` where there is no installation */
async function statusOf(command: Command): Promise<Status> {
  const config = configOf(command);
  requireInstallation(config);
  const access = openForCommand(command);
  const detections = createFileReader(folderOf(config).detections);
  try {
    const sources = {
      folder: folderOf(config),
      drop: config.ingest.drop,
      enabled: enabledExports(config),
      access: access.db,
      detections: detections.db,
      backup: config.backup,
    };
    const standing = await readOverview(sources, Date.now());
    return { ...standing, url: standing.running ? readNoted(sources.folder.address) : listeningUrl(config) };
  } finally {
    detections.close();
    access.close();
  }
}
