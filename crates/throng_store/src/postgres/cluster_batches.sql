-- Requests about many players at once.

-- Saves, and gives the last `_given` of these players to another run.
CREATE FUNCTION cluster_hand_off(_node INTEGER, _run BIGINT, _players BIGINT[], _epochs BIGINT[], _revisions BIGINT[], _records BYTEA[],
    _given BIGINT, _to_node INTEGER, _to_run BIGINT, _at_ms BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _code INTEGER;
BEGIN
    IF NOT cluster_is_alive(_to_node, _to_run, _at_ms) THEN
        RETURN 2;
    END IF;
    _code := cluster_save(_node, _run, _players, _epochs, _revisions, _records);
    IF _code = 0 THEN
        PERFORM cluster_give(player, _to_node, _to_run) FROM unnest(_players[cardinality(_players) - _given + 1 :]) AS player;
    END IF;
    RETURN _code;
END $$;

-- Like `cluster_claim_late`. Returns the claimed players and their epochs, too.
CREATE FUNCTION cluster_claim_players(_node INTEGER, _run BIGINT, _players_max BIGINT, _at_ms BIGINT, OUT _code INTEGER,
    OUT _players BIGINT[], OUT _epochs BIGINT[]) LANGUAGE plpgsql AS $$
DECLARE
    _late RECORD;
BEGIN
    _players := '{}';
    _epochs := '{}';
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        _code := 4;
        RETURN;
    END IF;
    PERFORM cluster_declare_dead(_node, NULL, _at_ms);
    -- Only players of runs that are marked as dead or are not the newest. A late heartbeat alone is not enough: it may be in progress. Runs
    -- that own players are found one after the other in the index, without reading all players.
    FOR _late IN
        WITH RECURSIVE owner AS (
            (SELECT node, run FROM cluster_player WHERE node IS NOT NULL ORDER BY node, run LIMIT 1)
            UNION ALL
            SELECT next.node, next.run FROM owner, LATERAL (
                SELECT node, run FROM cluster_player
                WHERE node IS NOT NULL AND (node, run) > (owner.node, owner.run) ORDER BY node, run LIMIT 1
            ) AS next
        )
        SELECT own.player, own.epoch FROM owner JOIN cluster_player AS own ON own.node = owner.node AND own.run = owner.run
            WHERE NOT EXISTS (SELECT FROM cluster_node AS alive
                WHERE alive.node = owner.node AND alive.run = owner.run AND NOT alive.is_dead)
            ORDER BY own.player < 0, own.player LIMIT _players_max
    LOOP
        PERFORM FROM cluster_player WHERE player = _late.player AND epoch = _late.epoch FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            PERFORM cluster_give(_late.player, _node, _run);
            _players := _players || _late.player;
            _epochs := _epochs || (_late.epoch + 1);
        END IF;
    END LOOP;
    _code := 0;
END $$;
