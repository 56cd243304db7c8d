/** GET and HEAD /v1/health, for load balancers and monitoring. */
import { Type } from '@sinclair/typebox';
import { EXPORT_NAMES } from '../../detection/content-type.ts';
import { HEALTH_STATUSES } from '../../health/rules.ts';
import { ROLES } from '../../store/role.ts';
import { COUNT, closed, described, nullable, TIMESTAMP, words } from '../description.ts';
import type { OpenRoute } from '../routes.ts';

export const HEALTH: OpenRoute = {
  path: '/v1/health',
  method: 'GET',
  head: 'headHealth',
  id: 'getHealth',
  tag: 'Service',
  summary: 'Check health',
  description: 'No authentication and no rate limit.',
  access: 'open',
  responses: {
    200: { description: 'Healthy.', schema: 'Health' },
    503: {
      description:
        'Degraded: an urgent alert (one that needs somebody now) is open, or an export has stalled.',
      schema: 'Health',
    },
  },
  schemas: {
    Health: closed({
      status: words(HEALTH_STATUSES),
      exports: closed(
        Object.fromEntries(
          EXPORT_NAMES.map((name) => [
            name,
            closed({ newest_done: nullable(TIMESTAMP, 'End of the newest finished window of the export.') }),
          ]),
        ),
      ),
      alerts: closed({
        open: described(COUNT, 'Alerts open now.'),
        page_worthy: described(COUNT, 'Open alerts that need someone now. Above 0, health is 503.'),
        paused: Type.Integer({
          minimum: 0,
          maximum: 1,
          description: '1 while ingest is deliberately paused.',
        }),
      }),
      role: described(
        words(ROLES),
        'writer: this machine ingests. standby: it follows one that does. superseded: another one took its place.',
      ),
    }),
  },
  answer({ health: source }) {
    const health = source.health();
    return { status: health.status === 'ok' ? 200 : 503, body: JSON.stringify(health) };
  },
};
