/** `wirewatch status`: the current state on one screen. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { type Status as Overview, readOverview } from '../admin/overview.ts';
import { enabledExports } from '../config/load.ts';
import { toggle } from '../operations/member.ts';
import { printable } from '../printable.ts';
import { Refused } from '../refused.ts';
import { createFileReader } from '../store/file-reader.ts';
import { readNoted } from '../store/noted-address.ts';
import { terminalWidth } from '../text-layout.ts';
import { SECOND_MS } from '../time.ts';
import { openForCommand } from './access.ts';
import { defineCommand } from './command.ts';
import { configOf, folderOf, listeningUrl, requireInstallation } from './installation.ts';
import { commonOptions, DROP_OPTION } from './options.ts';
import { statusText } from './status-text.ts';

const WIDTH_OF_PIPE = 100;
const WATCH_EVERY_MS = 2 * SECOND_MS;

/** The overview of the console, and where Wirewatch listens. */
export interface Status extends Overview {
  /** Where it would listen, if it is not running; null if that is not known. */
  readonly url: string | null;
}

export const register = defineCommand({
  members: { watch: toggle('refresh the screen until you press Ctrl-C') },
  options: [DROP_OPTION],
  examples: ['status', 'status --watch', 'status --json'],
  async run({ watch = false }, self) {
    if (watch) return watchStatus(self);
    const status = await statusOf(self);
    return { value: status, text: () => textOf(status) };
  },
});

function textOf(status: Status): string {
  return statusText(status, Date.now(), terminalWidth() ?? WIDTH_OF_PIPE);
}

async function watchStatus(command: Command): Promise<never> {
  if (commonOptions(command).json || process.stdout.isTTY !== true)
    throw new Refused(
      'usage',
      '--watch needs a terminal, and cannot be combined with --json. Leave out --watch to print the status once.',
    );
  for (;;) {
    const text = printable(textOf(await statusOf(command)));
    // Drawn over the previous one, from the top of the screen, clearing the rest of each line and of the screen.
    process.stdout.write(`\x1b[H${text.replaceAll('\n', '\x1b[K\n')}\x1b[J`);
    await sleep(WATCH_EVERY_MS);
  }
}

/** @throws Refused `configuration` if there is no installation */
async function statusOf(command: Command): Promise<Status> {
  const config = configOf(command);
  requireInstallation(config);
  const folder = folderOf(config);
  using access = openForCommand(command);
  using detections = createFileReader(folder.detections);
  const sources = {
    folder,
    drop: config.ingest.drop,
    enabled: enabledExports(config),
    access: access.db,
    detections: detections.db,
    backup: config.backup,
  };
  const overview = await readOverview(sources, Date.now());
  return { ...overview, url: overview.running ? readNoted(folder.address) : listeningUrl(config) };
}
