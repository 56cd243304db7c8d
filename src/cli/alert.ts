/** `wirewatch alert`: the current problems, and how to fix them. */
import { readAlerts } from '../admin/overview.ts';
import { type Config, enabledExports } from '../config/load.ts';
import type { AlertDocument } from '../health/alert-texts.ts';
import { createFileReader } from '../store/file-reader.ts';
import { isLocked } from '../store/locks.ts';
import { table, terminalWidth, WIDTH_DEFAULT } from '../text-layout.ts';
import { subcommand } from './command.ts';
import { configOf, folderOf, installationOptions, requireInstallation } from './installation.ts';

export const register = subcommand(
  'list',
  'list the open alerts, urgent ones first. Exit code 1 if Wirewatch is not running',
  {
    examples: ['alert list', 'alert list --json'],
    async run(_values, self) {
      const config = configOf(self);
      requireInstallation(config);
      const isRunning = isLocked(folderOf(config).serveLock);
      const open = await openAlertsOf(config, isRunning);
      const alerts = isRunning ? open : [notRunning(config, installationOptions(self, config)), ...open];
      return {
        value: alerts,
        text: () => alertText(alerts),
        colours: { NOW: 'red' },
        failed: !isRunning,
      };
    },
  },
);

/** The alerts that Wirewatch reported last, and those that follow from the database now. */
async function openAlertsOf(config: Config, isRunning: boolean): Promise<AlertDocument[]> {
  const folder = folderOf(config);
  using reader = createFileReader(folder.detections);
  const sources = { folder, enabled: enabledExports(config), detections: reader.db };
  return await readAlerts(sources, isRunning, Date.now());
}

/** In place of the alerts that only a running Wirewatch reports. */
function notRunning(config: Config, options: string) {
  return {
    name: 'appliance not running',
    page_worthy: true,
    /** Not known. */
    since: null,
    detail: `Wirewatch is not running on ${config.dataFolder}, so only alerts that follow from its database are listed`,
    what_to_do: `Start it with: wirewatch serve${options}`,
  };
}

function alertText(alerts: readonly (AlertDocument | ReturnType<typeof notRunning>)[]): string {
  if (alerts.length === 0) return 'No alerts are open.';
  return table(
    alerts,
    [
      { title: 'URGENCY', value: ({ page_worthy }) => (page_worthy ? 'NOW' : 'later') },
      { title: 'ALERT', value: ({ name }) => name },
      { title: 'SINCE', value: ({ since }) => since },
      { title: 'DETAIL', value: ({ detail }) => detail },
      { title: 'WHAT TO DO', value: ({ what_to_do }) => what_to_do },
    ],
    // Sentences do not fit side by side, so a width applies even without a terminal.
    terminalWidth() ?? WIDTH_DEFAULT,
  );
}
