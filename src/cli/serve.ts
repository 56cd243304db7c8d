/** `wirewatch serve`: the appliance. */
import { bootIngestThread } from '../ingest/threads/ingest-client.ts';
import { defineCommand } from './command.ts';
import { SETTING_OPTIONS } from './options.ts';

export const register = defineCommand({
  options: SETTING_OPTIONS,
  ownHelp: { json: null },
  examples: [
    'serve',
    'serve --data /var/lib/wirewatch --drop /srv/exports --base-url https://detections.example.org',
  ],
  async run(_values, self) {
    // The thread loads its code on another processor while this one loads the server.
    const ingestThread = bootIngestThread();
    const { serveAppliance, untilSignal } = await import('./serving.ts');
    const { adviseOnStart } = await import('./start-advice.ts');
    const serving = await serveAppliance(self, 'appliance', { ingestThread });
    adviseOnStart(serving, self);
    await untilSignal(serving);
    return null;
  },
});
