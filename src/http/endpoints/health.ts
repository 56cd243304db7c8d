/** GET and HEAD /v1/health, for load balancers and monitoring. */
import type { HealthSource } from '../../health/monitor.ts';
import type { OpenRoute } from '../routes.ts';

export function healthRoute(source: HealthSource): OpenRoute {
  return {
    path: '/v1/health',
    method: 'GET',
    head: true,
    access: 'open',
    answer: () => {
      const health = source.health();
      return { status: health.status === 'ok' ? 200 : 503, body: JSON.stringify(health) };
    },
  };
}
