/** `wirewatch serve`: the appliance. */
import { isInTheClear } from '../config/listening.ts';
import { bootIngestThread } from '../ingest/threads/ingest-client.ts';
import { defineCommand } from './command.ts';
import { SETTING_OPTIONS } from './options.ts';

export const register = defineCommand({
  options: SETTING_OPTIONS,
  examples: [
    'serve',
    'serve --data /var/lib/wirewatch --drop /srv/exports --base-url https://detections.example.org',
  ],
  async run(_values, self) {
    // The thread loads its code on another processor while this one loads the server.
    const ingestThread = bootIngestThread();
    const { serveAppliance, untilSignal } = await import('./serving.ts');
    const { configOf } = await import('./installation.ts');
    const serving = await serveAppliance(configOf(self), 'appliance', { ingestThread });
    const { log, config, appliance } = serving;
    const { url } = appliance;
    if (config.server.base_url === '')
      log.warn(
        { url },
        'base_url is not set: links and error types name the listening address, which others may not reach. Set it with --base-url',
      );
    if (isInTheClear(config.server))
      log.warn(
        { url },
        'keys cross the network in the clear: there is neither a certificate nor a trusted proxy',
      );
    await untilSignal(serving);
    return null;
  },
});
