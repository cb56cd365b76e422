-- Nodes that are not connected to the bus are declared dead earlier than others.

CREATE FUNCTION cluster_quiet_after_ms() RETURNS BIGINT LANGUAGE sql IMMUTABLE AS 'SELECT 400::BIGINT';
CREATE FUNCTION cluster_unheard_after_ms() RETURNS BIGINT LANGUAGE sql IMMUTABLE AS 'SELECT 600::BIGINT';
CREATE FUNCTION cluster_steady_unheard_ms() RETURNS BIGINT LANGUAGE sql IMMUTABLE AS 'SELECT 1000::BIGINT';

-- Declares these runs dead, if the caller is steady and they have sent no heartbeat since these. A locked row is skipped, because its heartbeat
-- or another claim is in progress.
CREATE FUNCTION cluster_declare_unheard_dead(_by INTEGER, _nodes INTEGER[], _runs BIGINT[], _heartbeats BIGINT[], _at_ms BIGINT) RETURNS VOID
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM cluster_node WHERE node = _by AND cluster_now_ms(_at_ms) - steady_since_ms > cluster_steady_unheard_ms();
    IF FOUND THEN
        WITH unheard AS (
            SELECT own.node FROM cluster_node AS own
                JOIN unnest(_nodes, _runs, _heartbeats) AS quiet (node, run, heartbeat_ms)
                    ON quiet.node = own.node AND quiet.run = own.run AND quiet.heartbeat_ms = own.heartbeat_ms
                WHERE own.node <> _by AND NOT own.is_dead AND cluster_now_ms(_at_ms) - own.heartbeat_ms > cluster_unheard_after_ms()
                ORDER BY own.node FOR UPDATE OF own SKIP LOCKED
        )
        UPDATE cluster_node SET is_dead = TRUE FROM unheard WHERE cluster_node.node = unheard.node;
    END IF;
END $$;

DROP FUNCTION cluster_claim_players(INTEGER, BIGINT, BIGINT, BIGINT);
-- As before. Declares unheard runs dead, too, and returns the other nodes whose heartbeats are overdue.
CREATE FUNCTION cluster_claim_players(_node INTEGER, _run BIGINT, _players_max BIGINT, _unheard_nodes INTEGER[], _unheard_runs BIGINT[],
    _unheard_heartbeats BIGINT[], _at_ms BIGINT, OUT _code INTEGER, OUT _players BIGINT[], OUT _epochs BIGINT[], OUT _quiet_nodes INTEGER[],
    OUT _quiet_runs BIGINT[], OUT _quiet_heartbeats BIGINT[]) LANGUAGE plpgsql AS $$
BEGIN
    _players := '{}';
    _epochs := '{}';
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        _code := 4;
        RETURN;
    END IF;
    PERFORM cluster_declare_dead(_node, NULL, _at_ms);
    IF cardinality(_unheard_nodes) > 0 THEN
        PERFORM cluster_declare_unheard_dead(_node, _unheard_nodes, _unheard_runs, _unheard_heartbeats, _at_ms);
    END IF;
    -- Only players of runs that are marked as dead or are not the newest. A late heartbeat alone is not enough: it may be in progress. Runs
    -- that own players are found one after the other in the index, without reading all players. Players that another node claims at the same
    -- time are skipped.
    WITH RECURSIVE owner AS (
        (SELECT node, run FROM cluster_player WHERE node IS NOT NULL ORDER BY node, run LIMIT 1)
        UNION ALL
        SELECT next.node, next.run FROM owner, LATERAL (
            SELECT node, run FROM cluster_player
            WHERE node IS NOT NULL AND (node, run) > (owner.node, owner.run) ORDER BY node, run LIMIT 1
        ) AS next
    ), late AS (
        SELECT own.player FROM owner JOIN cluster_player AS own ON own.node = owner.node AND own.run = owner.run
            WHERE NOT EXISTS (SELECT FROM cluster_node AS alive
                WHERE alive.node = owner.node AND alive.run = owner.run AND NOT alive.is_dead)
            ORDER BY own.player < 0, own.player LIMIT _players_max FOR UPDATE OF own SKIP LOCKED
    ), given AS (
        UPDATE cluster_player AS own SET node = _node, run = _run, epoch = own.epoch + 1, is_adopted = FALSE
            FROM late WHERE own.player = late.player RETURNING own.player, own.epoch
    )
    SELECT coalesce(array_agg(player ORDER BY player < 0, player), '{}'), coalesce(array_agg(epoch ORDER BY player < 0, player), '{}')
        INTO _players, _epochs FROM given;
    SELECT coalesce(array_agg(node ORDER BY node), '{}'), coalesce(array_agg(run ORDER BY node), '{}'),
            coalesce(array_agg(heartbeat_ms ORDER BY node), '{}')
        INTO _quiet_nodes, _quiet_runs, _quiet_heartbeats
        FROM cluster_node WHERE node <> _node AND NOT is_dead AND cluster_now_ms(_at_ms) - heartbeat_ms > cluster_quiet_after_ms();
    _code := 0;
END $$;
