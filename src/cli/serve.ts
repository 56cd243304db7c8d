/** `wirewatch serve`: the appliance. */
import type { Command } from 'commander';
import { addExamples, addSettingFlags } from './options.ts';
import { serveAppliance, untilSignal } from './serving.ts';

export function register(program: Command): void {
  const command = program
    .command('serve')
    .description('run the appliance: read what is dropped, serve the Detection Reporting API')
    .action(async (_options, self: Command) => {
      const serving = await serveAppliance(self, 'appliance');
      if (serving.config.server.base_url === '') {
        serving.log.warn(
          { url: serving.appliance.url },
          'base_url is not set: links and error types name the listening address, which others may not reach. Set it with --base-url',
        );
      }
      await untilSignal(serving);
    });
  addSettingFlags(command);
  addExamples(command, [
    'serve',
    'serve --data /var/lib/wirewatch --drop /srv/exports --base-url https://detections.example.org',
  ]);
}
