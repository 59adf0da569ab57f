/** Issues of a running server, and alerts about them. */
export { Alerts, type AlertsConfig } from "./alerts.ts";
export { type AlertMail, type Webhook, webhookFormats } from "./channels.ts";
export {
  type AlertThresholds,
  defaultThresholds,
  findIssues,
  type Issue,
  type IssueSources,
} from "./issues.ts";
export { parseQuietHours, type QuietHours } from "./quiet_hours.ts";
