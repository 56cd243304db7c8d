/** `wirewatch serve`: the appliance. */
import type { Command } from 'commander';
import { bootIngestThread } from '../ingest/threads/ingest-client.ts';
import { addExamples, addSettingFlags, stateOwn } from './options.ts';

export function register(command: Command): void {
  command.action(async (_options, self: Command) => {
    // It loads its code on another processor while this thread loads the server.
    const ingestThread = bootIngestThread();
    const { serveAppliance, untilSignal } = await import('./serving.ts');
    const { adviseOnStart } = await import('./start-advice.ts');
    const serving = await serveAppliance(self, 'appliance', { ingestThread });
    adviseOnStart(serving, self);
    await untilSignal(serving);
  });
  addSettingFlags(command);
  stateOwn(command, { json: null });
  addExamples(command, [
    'serve',
    'serve --data /var/lib/wirewatch --drop /srv/exports --base-url https://detections.example.org',
  ]);
}
